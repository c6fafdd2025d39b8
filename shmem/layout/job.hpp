// SPDX-License-Identifier: Apache-2.0
// Facts about the running job that every part of the library may know.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "shmem/bootstrap/nodes.hpp"
#include "shmem/config/options.hpp"
#include "shmem/cores/processors.hpp"
#include "shmem/cores/sharing.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/layout/core_state.hpp"
#include "shmem/layout/kernel_sync.hpp"
#include "shmem/layout/metadata.hpp"
#include "shmem/layout/remote_board.hpp"
#include "shmem/memory/node_memory.hpp"
#include "shmem/memory/registered_memory.hpp"
#include "shmem/memory/symmetric_globals.hpp"

namespace shmem {

class Network;
class Trace;

/// The policy for `runnable` processes or threads of a node that wait for each other on `processors`. If several nodes
/// oversubscribe one machine, most waits are for PEs on the same processor: a waiter yields at once.
inline WaitPolicy policy_on(const Nodes& nodes, int runnable, int processors) {
  constexpr unsigned kYieldsOversubscribed = 64;
  return nodes.oversubscribed(runnable) ? WaitPolicy{.yields = kYieldsOversubscribed}
                                        : wait_policy(runnable, processors);
}

/// Fixed after start, except the memory that all PEs share. Owned by the Runtime; outlives all references to it.
struct Job {
  Options options;
  std::unique_ptr<Bootstrap> bootstrap;  // of the PEs of this node
  NodeMemory memory;
  int me;    // among the PEs of this node
  int size;  // the number of PEs on this node
  WaitPolicy policy;
  SymmetricGlobals globals{};
  int processors = 0;      // that all PEs together may use; 0: unknown
  Trace* trace = nullptr;  // SHMEM_TRACE; set once, before the first team
  Nodes nodes{};
  int first_without_survive = -1;           // the first PE that has not called shmemx_set_survive
  std::function<bool()> given_up{};         // of a group: another member has; a job is ended instead
  std::unique_ptr<SharingWatch> sharing{};  // of waits for the PEs of this node
  /// This PE has given data in a broadcast since its last barrier (Team::let_takers_arrive). A hint.
  std::unique_ptr<std::atomic<bool>> gave_data = std::make_unique<std::atomic<bool>>(false);
  /// Memory of the program that is symmetric until it is unregistered.
  std::unique_ptr<RegisteredMemory> registered = std::make_unique<RegisteredMemory>();
  RemoteBoard* remote_board = nullptr;  // what this PE shows to those on other nodes; as `network`, which reads it
  Network* network = nullptr;           // to PEs on other nodes; none in a job on one node

  [[nodiscard]] PeMetadata& metadata(int pe) const { return Board(memory.board(), size).pe(pe); }
  [[nodiscard]] TeamSync& team_sync(int slot, int pe) const { return Board(memory.board(), size).team(slot, pe); }
  [[nodiscard]] RoundWords& round_words(int slot, int pe) const { return Board(memory.board(), size).rounds(slot, pe); }
  [[nodiscard]] EagerWords& eager_words(int slot, int pe) const { return Board(memory.board(), size).eager(slot, pe); }
  [[nodiscard]] EagerRooms& eager_rooms(int slot, int pe) const { return Board(memory.board(), size).rooms(slot, pe); }
  [[nodiscard]] BroadcastPlaces* broadcast_places(int slot, int pe) const {
    return Board(memory.board(), size).broadcasts(slot, pe);
  }
  /// The Check of all waits: operation_canceled once the job has been ended. Thread-safe.
  [[nodiscard]] std::errc ended() const { return bootstrap->aborted() ? std::errc::operation_canceled : std::errc{}; }
  [[nodiscard]] Bootstrap& world_bootstrap() const { return bootstrap->everybody(); }
  [[nodiscard]] bool on_several_nodes() const { return nodes.several(); }
  [[nodiscard]] int world_me() const { return nodes.world(me); }
  [[nodiscard]] int world_size() const { return nodes.several() ? static_cast<int>(nodes.node_of.size()) : size; }

  /// The part that the cores of this PE read.
  [[nodiscard]] CoreState& core_state() const { return *reinterpret_cast<CoreState*>(memory.metadata(me)); }
  [[nodiscard]] KernelSync& kernel_sync(int pe) const {
    return *reinterpret_cast<KernelSync*>(memory.metadata(pe) + kKernelSyncOffset);
  }

  /// For `runnable` processes or threads that wait for each other, while `policy` is for the PEs alone.
  [[nodiscard]] WaitPolicy policy_for(int runnable) const {
    WaitPolicy all = policy_on(nodes, runnable, processors);
    all.alarm = policy.alarm;
    all.background = policy.background;
    all.sharing = runnable == size ? policy.sharing : nullptr;  // each PE is one thread
    return all;
  }

  /// From now on waits keep this PE away from the processors of the others, if there is one for each, else with them.
  void watch_sharing() {
    if (size == 1) {
      return;
    }
    std::vector<RunsOn*> pes;
    pes.reserve(static_cast<std::size_t>(size));
    for (int pe = 0; pe < size; ++pe) {
      pes.push_back(&metadata(pe).runs_on);
    }
    sharing = std::make_unique<SharingWatch>(std::move(pes), me, processors);
    policy.sharing = sharing.get();
  }

  [[nodiscard]] bool is_in_heap(const void* mine) const {
    return reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(me)) <
           memory.heap_size();
  }
  /// The other PE of this node whose heap has these bytes, as this PE addresses it (shmem_ptr); -1: none.
  [[nodiscard]] int other_heap_with(const void* address, std::size_t bytes) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(memory.heap(0));
    const std::size_t pe = offset / memory.heap_size();
    const bool whole = bytes <= memory.heap_size() - offset % memory.heap_size();
    return whole && pe < static_cast<std::size_t>(size) && pe != static_cast<std::size_t>(me) ? static_cast<int>(pe)
                                                                                              : -1;
  }
  /// The address of `mine` in `pe`, or nothing if `mine` is not in this PE's symmetric heap, a global variable that
  /// `pe` has too, or registered memory that loads and stores reach there.
  [[nodiscard]] MemoryRange locate(const void* mine, int pe) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(me));
    if (offset < memory.heap_size()) {
      return {memory.heap(pe) + offset, memory.heap_size() - offset};
    }
    const MemoryRange global = globals.locate(mine, pe);
    return global.address != nullptr ? global : registered->locate(mine, pe);
  }
  [[nodiscard]] std::byte* translate(const void* mine, int pe) const { return locate(mine, pe).address; }

  /// The same for a PE of another node, by its number in the world; nothing if `bytes` there are not symmetric.
  [[nodiscard]] std::optional<RemotePlace> locate_remote(const void* mine, std::size_t bytes, int pe) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(memory.heap(me));
    if (offset < memory.heap_size() && bytes <= memory.heap_size() - offset) {
      return RemotePlace{pe, Segment::kHeap, offset};
    }
    if (const auto place = globals.offset_of(mine, bytes, pe)) {
      return RemotePlace{pe, Segment::kGlobals, *place};
    }
    const auto found = registered->find(mine);
    return found && bytes <= found->room
               ? std::optional(RemotePlace{pe, registered_segment(found->slot), found->offset})
               : std::nullopt;
  }
};

}  // namespace shmem
