// SPDX-License-Identifier: Apache-2.0
// The team that an operator works for, as the library provides it (kv/api/team.cpp) and unit tests play it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <system_error>

#include "shmem/cores/core_group.hpp"

namespace shmem::kv {

/// Why a wait, or another PE, has failed, for messages.
inline std::string reason_text(std::errc error) {
  switch (error) {
    case std::errc::timed_out:
      return "it did not arrive in time (SHMEM_BARRIER_TIMEOUT)";
    case std::errc::owner_dead:
      return "its process has died";
    case std::errc::operation_canceled:
      return "the job was ended";
    default:
      return std::make_error_code(error).message();
  }
}

/// PEs are numbers in the team. An object in the memory of another PE is named by the same object of this PE. An Error
/// names the PE that cannot be reached, or that did not arrive. Used by one thread at a time, but for what watch()
/// returns and translate(), which any core may call.
class OperatorTeam {
 public:
  struct Facts {
    int me = 0;
    int size = 1;
    int size_on_node = std::numeric_limits<int>::max();
    int processors = std::numeric_limits<int>::max();  // that all PEs of this node share
    bool spans_nodes = false;
  };

  explicit OperatorTeam(const Facts& facts) : facts_(facts) {}
  OperatorTeam(const OperatorTeam&) = delete;
  OperatorTeam& operator=(const OperatorTeam&) = delete;
  virtual ~OperatorTeam() = default;

  [[nodiscard]] int me() const { return facts_.me; }
  [[nodiscard]] int size() const { return facts_.size; }
  [[nodiscard]] int size_on_node() const { return facts_.size_on_node; }
  [[nodiscard]] int processors() const { return facts_.processors; }
  [[nodiscard]] bool spans_nodes() const { return facts_.spans_nodes; }
  /// `pe` is on another node. False for numbers that are not PEs.
  [[nodiscard]] bool is_remote(int pe) const { return facts_.spans_nodes && is_on_other_node(pe); }

  /// The same object of `pe`; nullptr if `mine` is not symmetric, or `pe` is remote.
  [[nodiscard]] virtual std::byte* translate(const void* mine, int pe) const = 0;
  /// The bytes are one allocation of the symmetric heap, one registered memory, or global variables.
  [[nodiscard]] virtual bool is_symmetric(const std::byte* mine, std::size_t bytes) const = 0;
  /// A number for an object in symmetric memory, the same on all PEs.
  [[nodiscard]] virtual std::uint64_t offset(const void* mine) const = 0;
  /// The Check of a call that waits for `partner`; starts its time limit.
  [[nodiscard]] virtual CoreGroup::Check watch(int partner) const = 0;
  /// Why the job was ended, if it was.
  [[nodiscard]] virtual std::string why_ended() const = 0;
  /// "the job was ended: PE 1 (pid 7) was killed by signal 9 (Killed)". A process may also have died because it heard
  /// earlier than this one that the job was ended.
  [[nodiscard]] std::string explain(std::errc error) const {
    const bool died = error == std::errc::owner_dead;
    const std::string ended = died || error == std::errc::operation_canceled ? why_ended() : "";
    return reason_text(error) + (ended.empty() ? "" : (died ? "; the job was ended: " : ": ") + ended);
  }
  /// Collective: returns when all PEs of the team have called it.
  virtual Result<void> sync() = 0;

  // Memory that PEs have registered and that is private to their processes. Only copies of the kernel reach it.
  /// No PE of the job has `mine` as private memory. The same on all PEs.
  [[nodiscard]] virtual bool is_mapped(const void* mine) const = 0;
  /// Another PE of this node has it so. False for numbers that are not PEs.
  [[nodiscard]] virtual bool is_private(const void* mine, int pe) const = 0;
  /// `to` is an object of this PE, within one registered memory or elsewhere in symmetric memory.
  struct Piece {
    std::byte* to;
    const std::byte* from;
    std::size_t size;
  };
  static constexpr std::size_t kMostPieces = 256;
  /// Copies up to kMostPieces pieces, none of them empty, into memory of `pe`, a PE of this node. They have arrived
  /// when it returns. After an Error any of them may have.
  virtual Result<void> write_private(int pe, std::span<const Piece> pieces) = 0;

  // The rest is for teams that span nodes, and for remote PEs.
  /// The bytes are in symmetric memory of `pe` as well.
  [[nodiscard]] virtual bool has_remote(const void* mine, std::size_t bytes, int pe) const = 0;
  // Complete after the next quiet(), until which `from` is not changed.
  virtual Result<void> start_put(void* mine, int pe, const void* from, std::size_t bytes) = 0;
  virtual Result<void> start_store(const SyncWord& mine, int pe, std::uint64_t value) = 0;
  virtual Result<void> get(void* to, const void* mine, int pe, std::size_t bytes) = 0;
  /// Atomic.
  virtual Result<std::uint64_t> load(const SyncWord& mine, int pe) = 0;
  /// Orders earlier puts and stores before later ones.
  virtual Result<void> fence() = 0;
  /// Returns when earlier puts and stores have arrived.
  virtual Result<void> quiet() = 0;

  struct Vote {
    bool alike;    // all PEs have given the same digest
    bool willing;  // and none has said no
    int other;     // if one has: that PE
  };
  /// Collective, a sync of the team.
  virtual Result<Vote> vote(std::uint64_t digest, bool willing) = 0;
  /// The same without a digest, which the team may do by a barrier that carries no data.
  virtual Result<Vote> sync_willing(bool willing) { return vote(0, willing); }

 private:
  [[nodiscard]] virtual bool is_on_other_node(int pe) const = 0;

  Facts facts_;
};

}  // namespace shmem::kv
