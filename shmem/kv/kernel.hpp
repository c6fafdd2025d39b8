// SPDX-License-Identifier: Apache-2.0
// The steps of a shuffle. On plain pointers, so that several PEs can be played within one process.
//
// A block is cut into parts, one for each core, and each part has flags of its own: the receiver says "ready", the
// sender copies and says "done", or that it has failed. Whoever fails tells his partner, who would wait for ever
// otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "shmem/cores/signal.hpp"
#include "shmem/kv/cache.hpp"
#include "shmem/kv/pair_table.hpp"
#include "shmem/memory/copy.hpp"

namespace shmem::kv {

/// One PE's caches and flags. There is one flag for each part of each PE that may write here: [pe * parts + part].
struct PeMemory {
  std::byte* k = nullptr;
  std::byte* v = nullptr;
  SyncWord* flags = nullptr;
};

/// One PE's part of one call; checked.
struct Shuffle {
  Role role = Role::kIdle;
  int me = 0;
  int partner = 0;
  int parts = 0;  // even: the first half are of K, the second of V
  PeMemory mine, theirs;
  std::size_t block_bytes = 0;
  Moves moves{};            // of a sender
  std::uint64_t count = 0;  // the calls so far, with this one: flags need no clearing between calls
};

/// What a wait for the partner came to.
struct Report {
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

/// The flag in `memory` that PE `writer` writes for a part.
inline SyncWord& flag_of(const PeMemory& memory, int writer, int part, int parts) {
  return memory
      .flags[static_cast<std::size_t>(writer) * static_cast<std::size_t>(parts) + static_cast<std::size_t>(part)];
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

/// Waits for the partner's word about a part.
template <Core C>
Report hear(C& core, const Shuffle& shuffle, int part) {
  SyncWord& flag = flag_of(shuffle.mine, shuffle.partner, part, shuffle.parts);
  const std::errc error = signal_wait_at_least(core, flag, flag_value(shuffle.count));
  // Also after an error: a partner that said his word and then ended is not missing. He does not change it again before
  // this PE's next call.
  const std::uint64_t seen = core.load(flag);
  if (flag_count(seen) < shuffle.count) {
    return {Report::Stage::kWaiting, error};
  }
  if (flag_count(seen) > shuffle.count) {
    return {Report::Stage::kOutOfStep, std::errc::protocol_error};
  }
  if (flag_status(seen) != std::errc{}) {
    return {Report::Stage::kPartnerFailed, flag_status(seen)};
  }
  return {};
}

/// All parts, or the first that fails. After all, this core sees what the partner stored before he said them.
template <Core C>
Report hear_all(C& core, const Shuffle& shuffle) {
  Report report;
  for (int part = 0; part < shuffle.parts && report.stage == Report::Stage::kDone; ++part) {
    report = hear(core, shuffle, part);
  }
  core.dcci_all();  // what this core has read of the blocks is from before
  return report;
}

/// Tells the partner about a part. The store makes what this core stored before visible to whoever waits for it;
/// copy_bytes has seen to streaming stores.
template <Core C>
void say(C& core, const Shuffle& shuffle, int part, std::errc status) {
  core.fence();
  signal_set(core, flag_of(shuffle.theirs, shuffle.me, part, shuffle.parts), flag_value(shuffle.count, status));
}

/// The last part first: the partner waits for them from the first on, and when he has that he has all.
template <Core C>
void say_all(C& core, const Shuffle& shuffle, std::errc status) {
  for (int part = shuffle.parts - 1; part >= 0; --part) {
    say(core, shuffle, part, status);
  }
}

/// Copies one part of every block. A processor that reaches the caches only through a scratch memory of its own
/// double-buffers there; here a load and a store reach both, and going through a buffer would be a second copy.
inline void copy_part(const Shuffle& shuffle, int part) {
  const int half = shuffle.parts / 2;
  const bool is_k = part < half;
  const Slice slice = slice_of(shuffle.block_bytes, is_k ? part : part - half, half);
  const std::byte* from = (is_k ? shuffle.mine.k : shuffle.mine.v) + slice.offset;
  std::byte* to = (is_k ? shuffle.theirs.k : shuffle.theirs.v) + slice.offset;
  for (std::size_t i = 0; i < shuffle.moves.source.size(); ++i) {
    copy_bytes(to + static_cast<std::size_t>(shuffle.moves.destination[i]) * shuffle.block_bytes,
               from + static_cast<std::size_t>(shuffle.moves.source[i]) * shuffle.block_bytes, slice.size);
  }
}

}  // namespace shmem::kv
