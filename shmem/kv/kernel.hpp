// SPDX-License-Identifier: Apache-2.0
// What each core does in a shuffle. On plain pointers, so that several PEs can be played within one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "shmem/cores/core.hpp"
#include "shmem/kv/cache.hpp"
#include "shmem/kv/pair_table.hpp"
#include "shmem/memory/copy.hpp"

namespace shmem::kv {

/// One PE's caches and flags. There is one flag for each core of each PE that may write here: [pe * cores + core].
struct PeMemory {
  std::byte* k;
  std::byte* v;
  SyncWord* flags;
};

/// One PE's part of one call; checked.
struct Shuffle {
  Role role;
  int me, partner;
  PeMemory mine, theirs;
  std::size_t block_bytes;
  Moves moves;          // of a sender
  std::uint64_t count;  // the calls so far, with this one: flags need no clearing between calls
};

/// How a core's part ended.
struct CoreReport {
  enum class Stage { kDone, kWaiting, kPartnerFailed, kOutOfStep };
  Stage stage = Stage::kDone;
  std::errc error{};  // of the wait, or what the partner said
};

/// A flag says which call it is about and whether its writer's part of that went well. It only grows.
constexpr unsigned kStatusBits = 16;
constexpr std::uint64_t flag_value(std::uint64_t count, std::errc status = {}) {
  return count << kStatusBits | static_cast<std::uint16_t>(status);
}
constexpr std::uint64_t flag_count(std::uint64_t flag) {
  return flag >> kStatusBits;
}
constexpr std::errc flag_status(std::uint64_t flag) {
  return std::errc{static_cast<std::uint16_t>(flag)};
}

/// The flag in `memory` that core `core` of PE `writer` writes.
inline SyncWord& flag_of(const PeMemory& memory, int writer, int core, int cores) {
  return memory
      .flags[static_cast<std::size_t>(writer) * static_cast<std::size_t>(cores) + static_cast<std::size_t>(core)];
}

/// Part `part` of the `parts` that a block is cut into: whole cache lines, the remainder in the last.
struct Slice {
  std::size_t offset, size;
};
constexpr Slice slice_of(std::size_t block_bytes, int part, int parts) {
  constexpr std::size_t kLine = 64;
  const std::size_t each = block_bytes / static_cast<std::size_t>(parts) / kLine * kLine;
  const std::size_t offset = each * static_cast<std::size_t>(part);
  return {offset, part == parts - 1 ? block_bytes - offset : each};
}

/// Waits for the partner's word of this call.
template <Core C>
CoreReport await_partner(C& core, SyncWord& flag, std::uint64_t count) {
  const std::errc error = core.wait_at_least(flag, flag_value(count));
  core.dcci(&flag);
  // Looked at once more after an error too: a partner that said his word and then ended is not missing. Acquire: what
  // he stored before the flag is visible. He does not change it again before this PE's next call.
  const std::uint64_t seen = flag.value.load(std::memory_order_acquire);
  if (flag_count(seen) < count) {
    return {CoreReport::Stage::kWaiting, error};
  }
  if (flag_count(seen) > count) {
    return {CoreReport::Stage::kOutOfStep, std::errc::protocol_error};
  }
  if (flag_status(seen) != std::errc{}) {
    return {CoreReport::Stage::kPartnerFailed, flag_status(seen)};
  }
  return {};
}

/// The first half of the cores copies K, the second V, each its slice of every block. A processor that reaches the
/// caches only through a scratch memory of its own double-buffers there; here a load and a store reach both, and going
/// through a buffer would be a second copy.
inline void copy_slices(const Shuffle& shuffle, int core, int cores) {
  const int half = cores / 2;
  const bool is_k = core < half;
  const Slice slice = slice_of(shuffle.block_bytes, is_k ? core : core - half, half);
  const std::byte* from = (is_k ? shuffle.mine.k : shuffle.mine.v) + slice.offset;
  std::byte* to = (is_k ? shuffle.theirs.k : shuffle.theirs.v) + slice.offset;
  for (std::size_t i = 0; i < shuffle.moves.source.size(); ++i) {
    copy_bytes(to + static_cast<std::size_t>(shuffle.moves.destination[i]) * shuffle.block_bytes,
               from + static_cast<std::size_t>(shuffle.moves.source[i]) * shuffle.block_bytes, slice.size);
  }
}

/// One core's part, independent of the other cores. The receiver's core says "ready", the sender's copies and says
/// "done", or that it has failed: whoever fails tells his partner, who would wait for ever otherwise. The store of a
/// flag makes what the core stored before visible to whoever waits for it; copy_bytes has seen to streaming stores.
template <Core C>
CoreReport shuffle_on_core(C& core, const Shuffle& shuffle) {
  if (shuffle.role == Role::kIdle) {
    return {};
  }
  SyncWord& from_partner = flag_of(shuffle.mine, shuffle.partner, core.index(), core.count());
  SyncWord& to_partner = flag_of(shuffle.theirs, shuffle.me, core.index(), core.count());
  if (shuffle.role == Role::kReceiver) {
    core.store(to_partner, flag_value(shuffle.count));
    return await_partner(core, from_partner, shuffle.count);
  }
  const CoreReport report = await_partner(core, from_partner, shuffle.count);
  if (report.stage == CoreReport::Stage::kDone) {
    copy_slices(shuffle, core.index(), core.count());
  }
  core.store(to_partner, flag_value(shuffle.count, report.error));
  return report;
}

}  // namespace shmem::kv
