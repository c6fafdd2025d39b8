// SPDX-License-Identifier: Apache-2.0
// A network between played PEs that does all as late as it may: what is put comes with the next fence or quiet, the
// last first and out of what its sender has then, and words that are stored come at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "shmem/kv/far.hpp"

namespace kv_test {

/// What all PEs together have sent; a few of them fail.
struct PlayedTraffic {
  std::atomic<std::size_t> puts{0};
  /// Most that one PE had begun and not waited for.
  std::atomic<std::size_t> most_at_once{0};
  /// A PE has stored a word, or come to a vote, before what it had put was there.
  std::atomic<bool> told_early{false};
  /// What is put from one PE to another is lost, which the put itself says, or only the next quiet.
  enum class Loss { kNone, kAtPut, kAtQuiet };
  std::function<Loss(int from, int to)> loss{};
};

class PlayedFar final : public shmem::kv::Far {
 public:
  struct Place {
    int me = 0;
    int pes_a_node = 1;
    /// The same object of another PE; nullptr if it is not symmetric.
    std::function<std::byte*(const void* mine, std::size_t bytes, int pe)> translate{};
    std::function<shmem::Result<Vote>(std::uint64_t digest, bool willing)> vote{};
  };
  PlayedFar(Place place, PlayedTraffic& traffic) : place_(std::move(place)), traffic_(traffic) {}

  [[nodiscard]] bool is_far(int pe) const override { return pe / place_.pes_a_node != place_.me / place_.pes_a_node; }
  [[nodiscard]] bool has(const void* mine, std::size_t bytes, int pe) const override {
    return place_.translate(mine, bytes, pe) != nullptr;
  }
  shmem::Result<void> start_put(void* mine, int pe, const void* from, std::size_t bytes) override;
  shmem::Result<void> start_store(const shmem::SyncWord& mine, int pe, std::uint64_t value) override;
  shmem::Result<void> get(void* to, const void* mine, int pe, std::size_t bytes) override;
  shmem::Result<std::uint64_t> load(const shmem::SyncWord& mine, int pe) override;
  shmem::Result<void> fence() override;
  shmem::Result<void> quiet() override { return fence(); }
  shmem::Result<Vote> vote(std::uint64_t digest, bool willing) override;

 private:
  struct Put {
    int pe;
    std::byte* to;
    const void* from;
    std::size_t bytes;
  };
  [[nodiscard]] shmem::SyncWord& word(const shmem::SyncWord& mine, int pe) const {
    return *reinterpret_cast<shmem::SyncWord*>(place_.translate(&mine, sizeof mine, pe));
  }
  [[nodiscard]] PlayedTraffic::Loss loss_to(int pe) const {
    return traffic_.loss ? traffic_.loss(place_.me, pe) : PlayedTraffic::Loss::kNone;
  }
  void note_word() {
    if (!under_way_.empty()) traffic_.told_early = true;
  }

  const Place place_;
  PlayedTraffic& traffic_;
  std::vector<Put> under_way_;
};

}  // namespace kv_test
