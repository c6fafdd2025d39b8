// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/caches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <iterator>
#include <string_view>

namespace kv_program {
namespace {

static_assert(static_cast<int>(Format::kApart) == SHMEMX_KV_APART &&
              static_cast<int>(Format::kByLayer) == SHMEMX_KV_BY_LAYER &&
              static_cast<int>(Format::kInterleaved) == SHMEMX_KV_INTERLEAVED &&
              static_cast<int>(Format::kByBlock) == SHMEMX_KV_BY_BLOCK &&
              static_cast<int>(Format::kLatent) == SHMEMX_KV_LATENT);

/// In the order of Format.
constexpr std::array kNames{"apart", "by-layer", "interleaved", "by-block", "latent"};

}  // namespace

const char* name_of(Format format) {
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<Format> format_of(const std::string& name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found != kNames.end() ? std::optional(static_cast<Format>(std::distance(kNames.begin(), found)))
                               : std::nullopt;
}

std::int64_t Shape::offset(Part part, std::int64_t block) const {
  const std::int64_t v = part.cache == Cache::kV ? 1 : 0;
  const auto index = [&]() -> std::int64_t {
    switch (format) {
      case Format::kApart:
      case Format::kLatent:
        return part.layer * blocks + block;
      case Format::kByLayer:
        return (part.layer * 2 + v) * blocks + block;
      case Format::kInterleaved:
        return (part.layer * blocks + block) * 2 + v;
      case Format::kByBlock:
        return (block * layers + part.layer) * 2 + v;
    }
    return 0;
  };
  return index() * bytes_of_part();
}

std::string name_of(Part part) {
  return fmt::format("layer {} of the {} cache", part.layer, part.cache == Cache::kK ? "K" : "V");
}

namespace {

struct Dtype {
  std::string_view name;
  std::int32_t bytes;
};
constexpr std::array kDtypes{
    Dtype{"int8", 1},     Dtype{"uint8", 1}, Dtype{"fp8", 1},     Dtype{"fp8_e4m3", 1},
    Dtype{"fp8_e5m2", 1}, Dtype{"fp16", 2},  Dtype{"float16", 2}, Dtype{"bf16", 2},
    Dtype{"bfloat16", 2}, Dtype{"int16", 2}, Dtype{"fp32", 4},    Dtype{"float32", 4},
    Dtype{"int32", 4},    Dtype{"fp64", 8},  Dtype{"float64", 8}, Dtype{"int64", 8},
};

/// K and V of `kv_heads` heads of 128 elements of 16 bits, in pages of 16 tokens, vLLM's default.
constexpr Shape heads(std::int64_t layers, std::int64_t kv_heads) {
  return {.format = Format::kApart,
          .element_size = 2,
          .layers = layers,
          .kv_heads = kv_heads,
          .page_size = 16,
          .head_dim = 128};
}

/// num_hidden_layers, num_key_value_heads and head_dim (if absent, hidden_size / num_attention_heads) of each model's
/// config.json. DeepSeek-V3 has multi-head latent attention: a token has one vector of kv_lora_rank 512 and
/// qk_rope_head_dim 64 elements in each layer. FlashMLA has pages of 64 tokens.
constexpr std::array kModels{
    Model{"Llama-3-8B", heads(32, 8), "bf16", "huggingface.co/meta-llama/Meta-Llama-3-8B"},
    Model{"Llama-3-70B", heads(80, 8), "bf16", "huggingface.co/meta-llama/Meta-Llama-3-70B"},
    Model{"Qwen2.5-7B", heads(28, 4), "bf16", "huggingface.co/Qwen/Qwen2.5-7B"},
    Model{"Qwen2.5-32B", heads(64, 8), "bf16", "huggingface.co/Qwen/Qwen2.5-32B"},
    Model{"Qwen2.5-72B", heads(80, 8), "bf16", "huggingface.co/Qwen/Qwen2.5-72B"},
    Model{"Qwen3-8B", heads(36, 8), "bf16", "huggingface.co/Qwen/Qwen3-8B"},
    Model{"Qwen3-32B", heads(64, 8), "bf16", "huggingface.co/Qwen/Qwen3-32B"},
    Model{"DeepSeek-V3",
          {.format = Format::kLatent,
           .element_size = 2,
           .layers = 61,
           .kv_heads = 1,
           .page_size = 64,
           .head_dim = 512 + 64},
          "bf16",
          "huggingface.co/deepseek-ai/DeepSeek-V3"},
};

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::optional<std::int32_t> element_size_of(const std::string& dtype) {
  const auto* found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& known) { return known.name == dtype; });
  return found != kDtypes.end() ? std::optional(found->bytes) : std::nullopt;
}

std::string dtype_names() {
  std::string names;
  for (const Dtype& dtype : kDtypes) {
    names += (names.empty() ? "" : ", ") + std::string(dtype.name);
  }
  return names;
}

const Model* find_model(const std::string& name) {
  const auto* found =
      std::find_if(kModels.begin(), kModels.end(), [&](const Model& model) { return same_name(model.name, name); });
  return found != kModels.end() ? found : nullptr;
}

std::string list_models() {
  std::string text = "model         layers  KV heads  head dim  page  dtype  format   KiB a token  numbers from\n";
  for (const Model& model : kModels) {
    const Shape& shape = model.shape;
    text += fmt::format("{:<13} {:>6}  {:>8}  {:>8}  {:>4}  {:<5}  {:<7}  {:>11.1f}  {}\n", model.name, shape.layers,
                        shape.kv_heads, shape.head_dim, shape.page_size, model.dtype, name_of(shape.format),
                        static_cast<double>(shape.bytes_of_block()) / static_cast<double>(shape.page_size) / 1024,
                        model.source);
  }
  return text;
}

void fill_part(std::span<std::byte> bytes, BlockName name, Part part) {
  if (name == kZeros) {
    std::fill(bytes.begin(), bytes.end(), std::byte{});
    return;
  }
  // Fewer than 2^31 blocks and 2^31 PEs, so that no two parts have the same number.
  const auto block = static_cast<std::uint64_t>(name.pe) << 32 | static_cast<std::uint64_t>(name.block);
  const auto which = static_cast<std::uint64_t>(part.layer) << 1 | static_cast<std::uint64_t>(part.cache == Cache::kV);
  std::uint64_t state = base::mix(base::mix(block + 1) + which);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof state) {
    state += base::kGoldenRatio;
    const std::uint64_t word = base::mix(state);
    std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
  }
}

namespace {

/// Memory for the program and the operator, in addition to the caches.
constexpr std::int64_t kAdditional = std::int64_t{2} << 20;

std::int64_t mebibytes(std::int64_t bytes) {
  return (bytes + (1 << 20) - 1) >> 20;
}

}  // namespace

std::string too_large(const Shape& shape) {
  shmemx_heap_stats_t heap{};
  shmemx_heap_stats(&heap);
  const auto free = static_cast<std::int64_t>(heap.largest_free);
  if (shape.bytes() <= free) {
    return "";
  }
  const std::int64_t fit = (free - kAdditional) / shape.bytes_of_block();
  return fmt::format(
      "the caches of each PE take {} bytes ({} blocks of {}, all layers), and its symmetric heap has {} free: set "
      "SHMEM_SYMMETRIC_SIZE={}M or more{}",
      shape.bytes(), shape.blocks, shape.bytes_of_block(), free, mebibytes(shape.bytes() + kAdditional),
      fit >= 2 ? fmt::format(", or take --blocks {} or fewer", fit) : "");
}

void Caches::fill() const {
  for_each_part([this](Part part) {
    for (std::int64_t i = 0; i < shape_.blocks; ++i) {
      fill_part(bytes(part, i), {shmem_my_pe(), i}, part);
    }
  });
}

shmemx_kv_cache_t Caches::description() const {
  return {.k = k_.get(),
          .v = v_.get(),
          .format = static_cast<std::int32_t>(shape_.format),
          .element_size = shape_.element_size,
          .layers = shape_.layers,
          .blocks = shape_.blocks,
          .kv_heads = shape_.kv_heads,
          .page_size = shape_.page_size,
          .head_dim = shape_.head_dim};
}

Expected::Expected(int pes, std::int64_t blocks) {
  for (int pe = 0; pe < pes; ++pe) {
    auto& mine = now_.emplace_back();
    for (std::int64_t block = 0; block < blocks; ++block) {
      mine.push_back({pe, block});
    }
  }
}

void Expected::apply(std::span<const shmemx_kv_move_t> moves, bool clears) {
  std::vector<BlockName> sources;
  sources.reserve(moves.size());
  for (const auto& move : moves) {
    sources.push_back(at(move.src_pe, move.src_block));
  }
  const auto place = [this](std::int64_t pe, std::int64_t block) -> BlockName& {
    return now_.at(static_cast<std::size_t>(pe)).at(static_cast<std::size_t>(block));
  };
  for (std::size_t i = 0; clears && i < moves.size(); ++i) {
    place(moves[i].src_pe, moves[i].src_block) = kZeros;
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    place(moves[i].dst_pe, moves[i].dst_block) = sources[i];
  }
}

std::string Expected::compare_part(const Caches& caches, Part part, std::int64_t block,
                                   std::span<std::byte> right) const {
  const int pe = shmem_my_pe();
  const BlockName from = at(pe, block);
  fill_part(right, from, part);
  const auto found = caches.bytes(part, block);
  const auto wrong = std::mismatch(right.begin(), right.end(), found.begin()).first;
  if (wrong == right.end()) {
    return "";
  }
  return fmt::format("byte {} of block {} of {} of PE {} is not that of {}", wrong - right.begin(), block,
                     name_of(part), pe,
                     from == kZeros ? "a cleared block" : fmt::format("block {} of PE {}", from.block, from.pe));
}

std::string Expected::compare(const Caches& caches) const {
  std::vector<std::byte> right(static_cast<std::size_t>(caches.shape().bytes_of_part()));
  std::string wrong;
  caches.for_each_part([&](Part part) {
    for (std::int64_t block = 0; wrong.empty() && block < caches.shape().blocks; ++block) {
      wrong = compare_part(caches, part, block, right);
    }
  });
  return wrong;
}

}  // namespace kv_program
