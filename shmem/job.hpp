// SPDX-License-Identifier: Apache-2.0
// What every part of the library may know of the job it runs in.
#pragma once

#include <cstdint>
#include <memory>

#include "shmem/bootstrap/node_bootstrap.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/memory/node_memory.hpp"
#include "shmem/memory/symmetric_globals.hpp"
#include "shmem/net/network.hpp"
#include "shmem/options.hpp"
#include "shmem/team/core_state.hpp"
#include "shmem/team/far_board.hpp"
#include "shmem/team/kernel_sync.hpp"
#include "shmem/team/metadata.hpp"

namespace shmem {

class Trace;

/// For so many processes or threads of a node that wait for each other on so many processors. Where those of several
/// nodes crowd one machine, most of what they wait for is on their own processor: they yield it at once, as long as
/// `watch` finds that this pays, or else sleep.
inline WaitPolicy policy_on(const Nodes& nodes, int runnable, int processors, YieldWatch* watch) {
  constexpr unsigned kYieldsInCrowd = 64;
  return nodes.crowd(runnable) ? WaitPolicy{.yields = kYieldsInCrowd, .yield_watch = watch}
                               : wait_policy(runnable, processors);
}

/// Fixed after start, but for the memory that all PEs share. Owned by the Context; outlives everything that refers to
/// it.
struct Job {
  Options options;
  std::unique_ptr<Bootstrap> bootstrap;  // of the PEs of this node
  NodeMemory memory;
  int me;    // among the PEs of this node
  int size;  // how many they are
  WaitPolicy policy;
  SymmetricGlobals globals{};
  int processors = 0;      // that the PEs may use, all together; 0: not known
  Trace* trace = nullptr;  // SHMEM_TRACE; set once, before the first team
  Nodes nodes{};
  std::unique_ptr<YieldWatch> yield_watch{};  // of all waits where nodes crowd one machine
  std::unique_ptr<FarBoard> far_board{};  // what this PE shows to those on other nodes; as `network`, which reads it
  std::unique_ptr<Network> network{};     // to those on other nodes; none in a job on one node

  [[nodiscard]] PeMetadata& metadata(int pe) const { return Board(memory.board(), size).pe(pe); }
  [[nodiscard]] TeamSync& team_sync(int slot, int pe) const { return Board(memory.board(), size).team(slot, pe); }
  [[nodiscard]] RoundWords& round_words(int slot, int pe) const { return Board(memory.board(), size).rounds(slot, pe); }
  [[nodiscard]] CarriedWords& carried_words(int slot, int pe) const {
    return Board(memory.board(), size).carried(slot, pe);
  }
  [[nodiscard]] Bootstrap& world_bootstrap() const { return bootstrap->everybody(); }
  [[nodiscard]] bool on_several_nodes() const { return nodes.several(); }
  [[nodiscard]] int world_me() const { return nodes.world(me); }
  [[nodiscard]] int world_size() const { return nodes.several() ? static_cast<int>(nodes.node_of.size()) : size; }

  /// What the cores of this PE read.
  [[nodiscard]] CoreState& core_state() const { return *reinterpret_cast<CoreState*>(memory.metadata(me)); }
  [[nodiscard]] KernelSync& kernel_sync(int pe) const {
    return *reinterpret_cast<KernelSync*>(memory.metadata(pe) + kKernelSyncOffset);
  }

  /// For so many processes or threads that wait for each other, where `policy` is for the PEs alone.
  [[nodiscard]] WaitPolicy policy_for(int runnable) const {
    WaitPolicy all = policy_on(nodes, runnable, processors, yield_watch.get());
    all.alarm = policy.alarm;
    all.background = policy.background;
    return all;
  }

  [[nodiscard]] bool is_in_heap(const void* mine) const {
    return reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(me)) <
           memory.heap_size();
  }
  /// The same object of `pe`, or nothing if `mine` is not symmetric: neither in my symmetric heap nor a global variable
  /// that `pe` has too.
  [[nodiscard]] Place locate(const void* mine, int pe) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(me));
    if (offset < memory.heap_size()) {
      return {memory.heap(pe) + offset, memory.heap_size() - offset};
    }
    return globals.locate(mine, pe);
  }
  [[nodiscard]] std::byte* translate(const void* mine, int pe) const { return locate(mine, pe).address; }

  /// The same object of a PE of another node, by its number in the world; nothing if `bytes` there are not symmetric.
  [[nodiscard]] std::optional<FarPlace> locate_far(const void* mine, std::size_t bytes, int pe) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(me));
    if (offset < memory.heap_size() && bytes <= memory.heap_size() - offset) {
      return FarPlace{pe, Segment::kHeap, offset};
    }
    const auto place = globals.offset_of(mine, bytes, pe);
    return place ? std::optional(FarPlace{pe, Segment::kGlobals, *place}) : std::nullopt;
  }
};

/// The Check of waits that are for anything but a barrier: ends them when the job has been ended.
class JobWatch {
 public:
  explicit JobWatch(const Job& job) : job_(job) {}
  std::errc operator()() const { return job_.bootstrap->aborted() ? std::errc::operation_canceled : std::errc{}; }

 private:
  const Job& job_;
};

}  // namespace shmem
