// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/models.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <string_view>

namespace kv_program {
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

/// K and V of `kv_heads` heads of 128 elements, in 16 bits and pages of 16 tokens, which is what vLLM takes by default.
constexpr Shape heads(std::int64_t layers, std::int64_t kv_heads) {
  return {.format = Format::kApart,
          .element_size = 2,
          .layers = layers,
          .kv_heads = kv_heads,
          .page_size = 16,
          .head_dim = 128};
}

/// num_hidden_layers, num_key_value_heads and head_dim (hidden_size / num_attention_heads where it is not given) of
/// each model's config.json. DeepSeek-V3 has multi-head latent attention, so a token leaves one vector of kv_lora_rank
/// 512 and qk_rope_head_dim 64 elements in each layer; FlashMLA has pages of 64 tokens.
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
    char line[200];
    std::snprintf(line, sizeof line, "%-13s %6lld  %8lld  %8lld  %4lld  %-5s  %-7s  %11.1f  %s\n", model.name,
                  static_cast<long long>(shape.layers), static_cast<long long>(shape.kv_heads),
                  static_cast<long long>(shape.head_dim), static_cast<long long>(shape.page_size), model.dtype,
                  name_of(shape.format),
                  static_cast<double>(shape.bytes_of_block()) / static_cast<double>(shape.page_size) / 1024,
                  model.source);
    text += line;
  }
  return text;
}

}  // namespace kv_program
