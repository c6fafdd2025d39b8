// SPDX-License-Identifier: Apache-2.0
// What two partners tell each other. On plain pointers, so that several PEs can be played within one process.
//
// Each core has flags of its own: the receiver says "ready", the sender copies and says "done", or that it has failed.
// Whoever fails tells his partner, who would wait for ever otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "shmem/cores/signal.hpp"

namespace shmem::kv {

/// What others write into the memory of one PE.
struct PairWords {
  SyncWord* flags = nullptr;    // [pe * cores + core]
  SyncWord* digests = nullptr;  // [pe]: what a receiver means to receive, before it says that it is ready
};

/// One PE's side of one call.
struct Pairing {
  int me = 0;
  int partner = 0;
  int cores = 0;
  PairWords mine{}, theirs{};
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

/// The flag among `words` that PE `writer` writes for a core.
inline SyncWord& flag_of(const PairWords& words, int writer, int core, int cores) {
  return words
      .flags[static_cast<std::size_t>(writer) * static_cast<std::size_t>(cores) + static_cast<std::size_t>(core)];
}

/// Waits for the partner's word about a core.
template <Core C>
Report hear(C& core, const Pairing& pairing, int index) {
  SyncWord& flag = flag_of(pairing.mine, pairing.partner, index, pairing.cores);
  const std::errc error = signal_wait_at_least(core, flag, flag_value(pairing.count));
  // Also after an error: a partner that said his word and then ended is not missing. He does not change it again before
  // this PE's next call.
  const std::uint64_t seen = core.load(flag);
  if (flag_count(seen) < pairing.count) {
    return {Report::Stage::kWaiting, error};
  }
  if (flag_count(seen) > pairing.count) {
    return {Report::Stage::kOutOfStep, std::errc::protocol_error};
  }
  if (flag_status(seen) != std::errc{}) {
    return {Report::Stage::kPartnerFailed, flag_status(seen)};
  }
  return {};
}

/// All cores, or the first that fails. After all, this core sees what the partner stored before he said them.
template <Core C>
Report hear_all(C& core, const Pairing& pairing) {
  Report report;
  for (int index = 0; index < pairing.cores && report.stage == Report::Stage::kDone; ++index) {
    report = hear(core, pairing, index);
  }
  core.dcci_all();  // what this core has read of the blocks is from before
  return report;
}

/// Tells the partner about a core. The store makes what this core stored before visible to whoever waits for it;
/// PieceCopy has seen to streaming stores.
template <Core C>
void say(C& core, const Pairing& pairing, int index, std::errc status) {
  core.fence();
  signal_set(core, flag_of(pairing.theirs, pairing.me, index, pairing.cores), flag_value(pairing.count, status));
}

/// The last core first: the partner waits for them from the first on, and when he has that he has all.
template <Core C>
void say_all(C& core, const Pairing& pairing, std::errc status) {
  for (int index = pairing.cores - 1; index >= 0; --index) {
    say(core, pairing, index, status);
  }
}

/// A receiver says what it means to receive. REQUIRES: it says that it is ready afterwards.
template <Core C>
void say_digest(C& core, const Pairing& pairing, std::uint64_t digest) {
  core.store(pairing.theirs.digests[pairing.me], digest);
}

/// What the partner means to receive. REQUIRES: the partner has been heard to be ready.
template <Core C>
std::uint64_t hear_digest(C& core, const Pairing& pairing) {
  return core.load(pairing.mine.digests[pairing.partner]);
}

}  // namespace shmem::kv
