// SPDX-License-Identifier: Apache-2.0
// The software algorithms of barriers, with their names for the environment, shmem_info and messages.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace shmem {

enum class Algorithm {
  kNpuV1,
  kNpuV2,
  kNpuV3,
  kCentralCounter,
  kTournament,
  kRecursiveDoubling,
  kDissemination,
  kBasic,
  kAdaptive,
  kHierarchical
};

constexpr int kMostRadix = 8;
constexpr int kGroup = 8;

/// The parameters of algorithms; the same on all members.
struct BarrierTuning {
  int radix = kMostRadix;       // npu_v2: of the dissemination, from 2; npu_v3: the most cores that pull
  int group = kGroup;           // hierarchical: members per leader, including the leader
  bool oversubscribed = false;  // PEs outnumber the processors that they may use
};

/// How the first members of a team's nodes synchronise by messages; the same on all nodes.
struct NodesChoice {
  Algorithm algorithm = Algorithm::kNpuV1;
  BarrierTuning tuning{};
};

struct BarrierChoice {
  Algorithm algorithm = Algorithm::kCentralCounter;  // among the members of a node
  BarrierTuning tuning{};
  bool trial = false;  // to be measured, not yet chosen
  NodesChoice nodes{};
};

struct AlgorithmSpec {
  Algorithm algorithm;
  const char* name;
  const char* help;
};

/// In the order of Algorithm.
inline constexpr auto kAlgorithms = std::to_array<AlgorithmSpec>({
    {Algorithm::kNpuV1, "npu_v1", "dissemination by push: each PE signals PEs at distance 1, 2, 4, ..., on core 0"},
    {Algorithm::kNpuV2, "npu_v2",
     "dissemination in groups of SHMEM_BARRIER_RADIX: each PE signals several others per phase, its cores share them"},
    {Algorithm::kNpuV3, "npu_v3", "centralized pull: each PE writes one word, its cores share those of the others"},
    {Algorithm::kCentralCounter, "central_counter", "the members count themselves; the last one releases all"},
    {Algorithm::kTournament, "tournament",
     "in each round half of the remaining members signal the other half; released down the tree"},
    {Algorithm::kRecursiveDoubling, "recursive_doubling",
     "in each round pairs of members whose numbers differ in one bit synchronise"},
    {Algorithm::kDissemination, "dissemination",
     "as npu_v1, but by pull: each PE writes words of its own and reads those of others"},
    {Algorithm::kBasic, "basic", "member 0 waits for each of the others in turn, then releases each"},
    {Algorithm::kAdaptive, "adaptive",
     "by a fixed rule: central_counter where PEs outnumber processors, else npu_v3 up to 8 PEs, else "
     "recursive_doubling"},
    {Algorithm::kHierarchical, "hierarchical",
     "in groups of SHMEM_BARRIER_GROUP, a leader waits for the others; then the leaders synchronise"},
});

constexpr const char* name_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)].name;
}

/// The names that choose a team's barrier, by number: those of the algorithms, then auto and gba. -1: no such name.
constexpr int number_of_barrier(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kAlgorithms, [name](const AlgorithmSpec& spec) { return spec.name == name; });
  if (found != kAlgorithms.end() || name == "auto") {
    return static_cast<int>(found - kAlgorithms.begin());
  }
  return name == "gba" ? static_cast<int>(kAlgorithms.size()) + 1 : -1;
}

constexpr const char* name_of_barrier(int number) {
  if (number < 0) {
    return "none that exists";
  }
  const auto index = static_cast<std::size_t>(number);
  return index < kAlgorithms.size() ? kAlgorithms[index].name : (index == kAlgorithms.size() ? "auto" : "gba");
}

constexpr std::optional<Algorithm> find_algorithm(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kAlgorithms, [name](const AlgorithmSpec& spec) { return spec.name == name; });
  return found != kAlgorithms.end() ? std::optional(found->algorithm) : std::nullopt;
}

}  // namespace shmem
