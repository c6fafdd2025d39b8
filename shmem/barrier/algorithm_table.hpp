// SPDX-License-Identifier: Apache-2.0
// The software algorithms of barriers by name: what the environment, shmem_info and messages read.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace shmem {

enum class Algorithm { kNpuV3, kCentralCounter };

struct AlgorithmSpec {
  Algorithm algorithm;
  const char* name;
  const char* help;
};

/// In the order of Algorithm.
inline constexpr auto kAlgorithms = std::to_array<AlgorithmSpec>({
    {Algorithm::kNpuV3, "npu_v3", "centralized pull: each PE writes one word, its cores share those of the others"},
    {Algorithm::kCentralCounter, "central_counter", "the members count themselves; the last one releases all"},
});

constexpr const char* name_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].name;
}

constexpr std::optional<Algorithm> find_algorithm(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kAlgorithms, [name](const AlgorithmSpec& spec) { return spec.name == name; });
  return found != kAlgorithms.end() ? std::optional(found->algorithm) : std::nullopt;
}

}  // namespace shmem
