// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/layout.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace kv_program {
namespace {

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
  return "layer " + std::to_string(part.layer) + " of the " + (part.cache == Cache::kK ? "K" : "V") + " cache";
}

}  // namespace kv_program
