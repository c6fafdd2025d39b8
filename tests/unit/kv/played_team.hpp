// SPDX-License-Identifier: Apache-2.0
// One PE's view of the team that PlayedPes simulates. The network between nodes delivers as late as it may: puts arrive
// at the next fence or quiet, in reverse order and with the contents that their source has then. Only stored words
// arrive at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "kv/operator/operator_team.hpp"

namespace kv_test {

class PlayedPes;

/// The traffic of all PEs together, and the puts that are to fail.
struct PlayedTraffic {
  std::atomic<std::size_t> puts{0};
  /// The largest number of puts that one PE had under way.
  std::atomic<std::size_t> most_at_once{0};
  /// Whether a PE stored a word, or entered a vote, before its puts had arrived.
  std::atomic<bool> told_early{false};
  /// A lost put is reported by the put itself or by the next quiet.
  enum class Loss { kNone, kAtPut, kAtQuiet };
  std::function<Loss(int from, int to)> loss{};
};

/// Private memory, and the copies of the kernel into it.
struct PlayedPrivate {
  std::set<int> pes{};
  std::atomic<std::size_t> calls{0};
  std::atomic<std::size_t> pieces{0};
  /// The error of the next call, or none.
  std::function<std::errc(int from, int to)> failure{};
};

class PlayedTeam final : public shmem::kv::OperatorTeam {
 public:
  PlayedTeam(PlayedPes& pes, int me);

  [[nodiscard]] std::byte* translate(const void* mine, int pe) const override;
  [[nodiscard]] bool is_symmetric(const std::byte* mine, std::size_t bytes) const override;
  [[nodiscard]] std::uint64_t offset(const void* mine) const override;
  [[nodiscard]] shmem::CoreGroup::Check watch(int partner) const override;
  [[nodiscard]] std::string why_ended() const override;
  shmem::Result<void> sync() override;

  [[nodiscard]] bool is_mapped(const void* mine) const override;
  [[nodiscard]] bool is_private(const void* mine, int pe) const override;
  shmem::Result<void> write_private(int pe, std::span<const Piece> pieces) override;

  [[nodiscard]] bool has_remote(const void* mine, std::size_t bytes, int pe) const override;
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
  [[nodiscard]] bool is_on_other_node(int pe) const override;
  /// A part of K or V, and not one of the operator's words.
  [[nodiscard]] bool is_in_caches(const void* mine) const;
  /// The copy of the object on `pe`; nullptr if it is not symmetric.
  [[nodiscard]] std::byte* at(const void* mine, std::size_t bytes, int pe) const;
  [[nodiscard]] shmem::SyncWord& word(const shmem::SyncWord& mine, int pe) const {
    return *reinterpret_cast<shmem::SyncWord*>(at(&mine, sizeof mine, pe));
  }
  [[nodiscard]] PlayedTraffic::Loss loss_to(int pe) const;
  void note_word();

  PlayedPes& pes_;
  std::vector<Put> under_way_;
};

}  // namespace kv_test
