// SPDX-License-Identifier: Apache-2.0
// What two partners tell each other. On plain pointers, so that several PEs can be played within one process.
//
// The receiver says "ready", then each core of the sender copies and says "done". Either may say instead that it has
// failed: the other would wait for ever otherwise. Both words are there for each pair of PEs in each direction, as who
// has sent may receive in its next call, before its last partner has looked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "shmem/cores/signal.hpp"

namespace shmem::kv {

/// What others write into the memory of one PE.
struct PairWords {
  SyncWord* ready = nullptr;    // [pe]: of receivers
  SyncWord* digests = nullptr;  // [pe]: what a receiver means to receive, before it says that it is ready
  SyncWord* done = nullptr;     // [pe * cores + core]: of senders
  SyncWord* sent = nullptr;     // [pe]: the last call that a sender was done with, before it says that one has failed

  /// So many words in a row.
  static constexpr std::size_t count(int pes, int cores) {
    return static_cast<std::size_t>(pes) * (3 + static_cast<std::size_t>(cores));
  }
  static PairWords at(SyncWord* words, std::ptrdiff_t pes) {
    return {words, words + pes, words + 3 * pes, words + 2 * pes};
  }
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

/// A word says which call it is about and whether its writer's part of that went well. It only grows.
constexpr unsigned kStatusBits = 16;
constexpr std::uint64_t word_value(std::uint64_t count, std::errc status = {}) {
  return count << kStatusBits | static_cast<std::uint16_t>(status);
}
constexpr std::uint64_t call_of(std::uint64_t word) {
  return word >> kStatusBits;
}
constexpr std::errc status_of(std::uint64_t word) {
  return std::errc{static_cast<std::uint16_t>(word)};
}

/// The word among `words` that PE `sender` writes for a core.
inline SyncWord& done_word(const PairWords& words, int sender, int core, int cores) {
  return words
      .done[static_cast<std::size_t>(sender) * static_cast<std::size_t>(cores) + static_cast<std::size_t>(core)];
}

/// Waits for a word of the partner about this call.
template <Core C>
Report hear(C& core, SyncWord& word, std::uint64_t count) {
  const std::errc error = signal_wait_at_least(core, word, word_value(count));
  const std::uint64_t seen = core.load(word);  // also after an error: a partner that said it and then ended has said it
  if (call_of(seen) < count) {
    return {Report::Stage::kWaiting, error};
  }
  if (call_of(seen) > count) {
    return {Report::Stage::kOutOfStep, std::errc::protocol_error};
  }
  if (status_of(seen) != std::errc{}) {
    return {Report::Stage::kPartnerFailed, status_of(seen)};
  }
  return {};
}

/// The sender's wait for the receiver.
template <Core C>
Report hear_ready(C& core, const Pairing& pairing) {
  const Report report = hear(core, pairing.mine.ready[pairing.partner], pairing.count);
  core.dcci_all();  // what this core has read is from before
  return report;
}

/// The partner, who has gone on since, was done with this call.
template <Core C>
bool was_sent(C& core, const Pairing& pairing) {
  SyncWord& sent = pairing.mine.sent[pairing.partner];
  core.dcci(&sent);
  return core.load(sent) == pairing.count;
}

/// The receiver's wait for all cores of the sender, or the first that fails. After it, this core sees what they stored.
template <Core C>
Report hear_done(C& core, const Pairing& pairing) {
  Report report;
  for (int index = 0; index < pairing.cores && report.stage == Report::Stage::kDone; ++index) {
    report = hear(core, done_word(pairing.mine, pairing.partner, index, pairing.cores), pairing.count);
    // A sender waits for nobody to say that a later call has failed. It has said before whether this one has not.
    if (report.stage == Report::Stage::kOutOfStep && was_sent(core, pairing)) {
      report = {};
    }
  }
  core.dcci_all();  // what this core has read of the blocks is from before
  return report;
}

/// Tells the sender. The store makes what this core stored before visible to whoever waits for it.
template <Core C>
void say_ready(C& core, const Pairing& pairing, std::errc status) {
  core.fence();
  signal_set(core, pairing.theirs.ready[pairing.me], word_value(pairing.count, status));
}

/// Tells the receiver about a core, likewise; PieceCopy has seen to streaming stores.
template <Core C>
void say_done(C& core, const Pairing& pairing, int index) {
  core.fence();
  signal_set(core, done_word(pairing.theirs, pairing.me, index, pairing.cores), word_value(pairing.count));
}

/// Tells the receiver that nothing has been sent, whether it has looked at this sender's last words or not.
template <Core C>
void say_not_sent(C& core, const Pairing& pairing, std::errc status) {
  const std::uint64_t last = core.load(done_word(pairing.theirs, pairing.me, 0, pairing.cores));
  if (status_of(last) == std::errc{}) {
    core.store(pairing.theirs.sent[pairing.me], call_of(last));
  }
  // The last core first: the receiver waits for them from the first on, and when it has that it has all.
  for (int index = pairing.cores - 1; index >= 0; --index) {
    core.fence();
    signal_set(core, done_word(pairing.theirs, pairing.me, index, pairing.cores), word_value(pairing.count, status));
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
