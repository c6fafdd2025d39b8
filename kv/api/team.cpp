// SPDX-License-Identifier: Apache-2.0
#include "kv/api/team.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "shmem/api/copied.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/memory/copy.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem::api {
namespace {

/// The shorter of two time limits; 0 is no limit.
std::chrono::milliseconds shorter(std::chrono::milliseconds a, std::chrono::milliseconds b) {
  return a.count() > 0 && (b.count() == 0 || a < b) ? a : b;
}

/// Ends a call that waits for a partner, a PE of the world, if it does not come. Called by several cores at once, so it
/// is not a WaitMonitor, which counts the time of one thread's wait.
class PartnerWatch {
 public:
  PartnerWatch(const Job& job, int partner) : job_(job), partner_(partner), number_(job.nodes.number(partner)) {
    const auto limit =
        is_remote() ? shorter(job.options.barrier_timeout, job.options.network_timeout) : job.options.barrier_timeout;
    deadline_ = limit.count() > 0 ? Clock::now() + limit : Clock::time_point::max();
  }

  std::errc operator()() const {
    if (const std::errc error = job_.ended(); error != std::errc{}) {
      return error;
    }
    if (is_remote() ? is_lost() : is_dead(job_, number_)) {
      return std::errc::owner_dead;
    }
    return Clock::now() < deadline_ ? std::errc{} : std::errc::timed_out;
  }

 private:
  [[nodiscard]] bool is_remote() const { return number_ < 0; }
  /// A put of no bytes sends nothing. It is an Error if the PE is lost, and starts the detection of a later loss.
  [[nodiscard]] bool is_lost() const { return !job_.network->start_put({partner_, Segment::kHeap, 0}, this, 0); }

  const Job& job_;
  int partner_;
  int number_;  // on this node
  Clock::time_point deadline_;
};

kv::OperatorTeam::Facts facts_of(const Job& job, Team& team) {
  return {.me = team.me(),
          .size = team.size(),
          .size_on_node = team.map_here().size,
          .processors = job.processors > 0 ? job.processors : std::numeric_limits<int>::max(),
          .spans_nodes = team.spanning() != nullptr};
}

class LibraryTeam final : public kv::OperatorTeam {
 public:
  LibraryTeam(const Job& job, const SymmetricHeap& heap, Team& team)
      : OperatorTeam(facts_of(job, team)), job_(job), heap_(heap), team_(team), map_(team.map()) {}

  [[nodiscard]] std::byte* translate(const void* mine, int pe) const override {
    const int number = job_.nodes.number(map_.pe(pe));
    return number >= 0 ? job_.translate(mine, number) : nullptr;
  }

  /// Memory of the heap is valid if it is part of one allocated block, and registered memory if it is part of one that
  /// has been registered.
  [[nodiscard]] bool is_symmetric(const std::byte* mine, std::size_t bytes) const override {
    const std::byte* const last = mine + (bytes - 1);
    const std::byte* const begin = job_.translate(mine, job_.me);
    if (begin == nullptr || job_.translate(last, job_.me) != begin + (bytes - 1)) {
      return false;
    }
    if (const auto found = job_.registered->find(mine)) {
      return bytes <= found->room;
    }
    if (!job_.is_in_heap(mine)) {
      return true;
    }
    const auto offset = static_cast<std::size_t>(mine - job_.memory.heap(job_.me));
    const auto block = heap_.block_around(offset);
    return block && !block->free() && offset + bytes <= block->end();
  }

  /// Global variables have the same number: they are the same ones on all PEs, at different addresses.
  [[nodiscard]] std::uint64_t offset(const void* mine) const override {
    if (const auto found = job_.registered->find(mine)) {
      constexpr int kOffsetBits = 48;  // no address has more
      return std::uint64_t{found->slot + 1} << kOffsetBits | found->offset;
    }
    return job_.is_in_heap(mine)
               ? static_cast<std::uint64_t>(static_cast<const std::byte*>(mine) - job_.memory.heap(job_.me))
               : ~std::uint64_t{0};
  }

  [[nodiscard]] CoreGroup::Check watch(int partner) const override { return PartnerWatch(job_, map_.pe(partner)); }
  [[nodiscard]] std::string why_ended() const override { return job_.bootstrap->aborted().value_or(""); }
  Result<void> sync() override { return team_.sync(); }

  [[nodiscard]] bool is_mapped(const void* mine) const override {
    const auto found = job_.registered->find(mine);
    return !found || job_.registered->is_mapped(*found);
  }
  [[nodiscard]] bool is_private(const void* mine, int pe) const override {
    return private_copy(mine, pe >= 0 && pe < map_.size ? job_.nodes.number(map_.pe(pe)) : -1).memory != nullptr;
  }
  Result<void> write_private(int pe, std::span<const Piece> pieces) override {
    const int number = job_.nodes.number(map_.pe(pe));
    const ProcessMemory* process = nullptr;
    std::array<CopyPiece, kMostPieces> there;
    std::size_t count = 0;
    for (const Piece& piece : pieces) {
      const PrivateCopy copy = private_copy(piece.to, number);
      if (copy.memory == nullptr) {  // of a cache whose K and V are memory of different kinds
        copy_bytes(job_.translate(piece.to, number), piece.from, piece.size);
        continue;
      }
      process = &*copy.memory->process;
      there[count++] = {copy.memory->address + copy.offset, piece.from, piece.size};
    }
    const std::errc error = process != nullptr ? process->write(std::span(there).first(count)) : std::errc{};
    return error == std::errc{} ? Result<void>{} : copy_failure(job_, number, error);
  }

  [[nodiscard]] bool has_remote(const void* mine, std::size_t bytes, int pe) const override {
    return job_.locate_remote(mine, bytes, map_.pe(pe)).has_value();
  }
  Result<void> start_put(void* mine, int pe, const void* from, std::size_t bytes) override {
    const auto to = locate(mine, bytes, pe);
    return to ? job_.network->start_put(*to, from, bytes) : to.error();
  }
  Result<void> start_store(const SyncWord& mine, int pe, std::uint64_t value) override {
    const auto word = locate(&mine.value, sizeof value, pe);
    return word ? job_.network->post_atomic(*word, sizeof value, AtomicOperation::kSet, value) : word.error();
  }
  Result<void> get(void* to, const void* mine, int pe, std::size_t bytes) override {
    const auto from = locate(mine, bytes, pe);
    return from ? job_.network->get(to, *from, bytes) : from.error();
  }
  Result<std::uint64_t> load(const SyncWord& mine, int pe) override {
    const auto word = locate(&mine.value, sizeof(std::uint64_t), pe);
    return word ? job_.network->fetch_atomic(*word, sizeof(std::uint64_t), AtomicOperation::kFetch, 0) : word.error();
  }
  Result<void> fence() override { return job_.network->fence(); }
  Result<void> quiet() override { return job_.network->quiet(); }

  Result<Vote> vote(std::uint64_t digest, bool willing) override { return as_vote(team_.vote(digest, willing, 0)); }
  Result<Vote> sync_willing(bool willing) override { return as_vote(team_.spanning()->sync_willing(willing)); }

 private:
  [[nodiscard]] Result<Vote> as_vote(const Result<VoteResult>& verdict) const {
    if (!verdict) {
      return verdict.error();
    }
    return Vote{
        .alike = verdict->alike, .willing = verdict->willing, .other = map_.member(verdict->other).value_or(-1)};
  }
  [[nodiscard]] bool is_on_other_node(int pe) const override {
    return pe >= 0 && pe < map_.size && job_.nodes.number(map_.pe(pe)) < 0;
  }
  /// Another PE's private memory, and the place of `mine` in it; nullptr: it is mapped, or not there.
  struct PrivateCopy {
    const Registration::Copy* memory = nullptr;
    std::size_t offset = 0;
  };
  [[nodiscard]] PrivateCopy private_copy(const void* mine, int number) const {
    const auto found = number >= 0 ? job_.registered->find(mine) : std::nullopt;
    return found ? PrivateCopy{job_.registered->copied(*found, number), found->offset} : PrivateCopy{};
  }
  [[nodiscard]] Result<RemotePlace> locate(const void* mine, std::size_t bytes, int pe) const {
    const auto place = job_.locate_remote(mine, bytes, map_.pe(pe));
    return place ? Result<RemotePlace>(*place)
                 : fail(std::errc::bad_address, fmt::format("PE {} has no such memory", pe));
  }

  const Job& job_;
  const SymmetricHeap& heap_;
  Team& team_;
  const TeamMap map_;
};

}  // namespace

std::unique_ptr<kv::OperatorTeam> operator_team(Runtime& runtime, Team& team) {
  return std::make_unique<LibraryTeam>(runtime.job(), runtime.heap(), team);
}

}  // namespace shmem::api
