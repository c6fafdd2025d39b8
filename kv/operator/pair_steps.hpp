// SPDX-License-Identifier: Apache-2.0
// What two partners tell each other. On plain pointers, so that unit tests can play several PEs within one process.
//
// The receiver says "ready", then each core of the sender copies and says "done". Instead, either may say that it has
// failed, so that the other does not wait forever. There is a word of each kind for each pair of PEs in each direction,
// because a PE that has sent may receive in its next call, before its last partner has read the word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>

#include "shmem/cores/core.hpp"

namespace shmem::kv {

/// The words in the memory of one PE that its partners write.
struct PartnerWords {
  SyncWord* ready = nullptr;    // [pe]: of receivers
  SyncWord* digests = nullptr;  // [pe]: what a receiver expects, before it says that it is ready
  SyncWord* done = nullptr;     // [pe * cores + core]: of senders
  SyncWord* sent = nullptr;     // [pe]: the last call that a sender completed, before it says that a later one failed

  /// The number of words, in one array.
  static constexpr std::size_t count(int pes, int cores) {
    return static_cast<std::size_t>(pes) * (3 + static_cast<std::size_t>(cores));
  }
  static PartnerWords at(SyncWord* words, std::ptrdiff_t pes) {
    return {.ready = words, .digests = words + pes, .done = words + 3 * pes, .sent = words + 2 * pes};
  }
};

/// One PE's side of one call.
struct Pairing {
  int me = 0;
  int partner = 0;
  int cores = 0;
  PartnerWords mine{}, theirs{};
  std::uint64_t count = 0;  // of calls, including this one: words are not cleared between calls
};

/// The result of a wait for the partner.
struct Report {
  enum class Stage { kDone, kWaiting, kPartnerFailed, kOutOfStep };
  Stage stage = Stage::kDone;
  std::errc error{};  // of the wait, or the partner's
};

/// A word contains the number of a call, and the status of its writer's part of it. It only grows.
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
inline SyncWord& done_word(const PartnerWords& words, int sender, int core, int cores) {
  return words
      .done[static_cast<std::size_t>(sender) * static_cast<std::size_t>(cores) + static_cast<std::size_t>(core)];
}

/// Waits for a word of the partner about this call.
template <Core C>
Report hear(C& core, SyncWord& word, std::uint64_t count) {
  const std::errc error = signal_wait_at_least(core, word, word_value(count));
  const std::uint64_t seen = core.load(word);  // also after an error: the partner may have written it and then ended
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
  core.dcci_all();  // what this core has cached is older
  return report;
}

/// The partner, which has made later calls since, completed this one.
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
    // A sender may write the failure of a later call before this PE has read the word. Then `sent` tells about this
    // one.
    if (report.stage == Report::Stage::kOutOfStep && was_sent(core, pairing)) {
      report = {};
    }
  }
  core.dcci_all();  // what this core has cached of the blocks is older
  return report;
}

/// Tells the sender. What this core stored before is visible to a core that sees the word.
template <Core C>
void say_ready(C& core, const Pairing& pairing, std::errc status) {
  core.fence();
  signal_set(core, pairing.theirs.ready[pairing.me], word_value(pairing.count, status));
}

/// Tells the receiver that a core is done, likewise. PieceCopy::finish() orders streaming stores.
template <Core C>
void say_done(C& core, const Pairing& pairing, int index) {
  core.fence();
  signal_set(core, done_word(pairing.theirs, pairing.me, index, pairing.cores), word_value(pairing.count));
}

/// The same of all cores.
template <Core C>
void say_done_by_all(C& core, const Pairing& pairing) {
  for (int index = pairing.cores - 1; index >= 0; --index) {
    say_done(core, pairing, index);  // the last one first, as in say_not_sent()
  }
}

/// Tells the receiver that nothing was sent, even if it has not yet read this sender's last words.
template <Core C>
void say_not_sent(C& core, const Pairing& pairing, std::errc status) {
  const std::uint64_t last = core.load(done_word(pairing.theirs, pairing.me, 0, pairing.cores));
  if (status_of(last) == std::errc{}) {
    core.store(pairing.theirs.sent[pairing.me], call_of(last));
  }
  // The last core first: the receiver waits for the first one first, and then finds all others.
  for (int index = pairing.cores - 1; index >= 0; --index) {
    core.fence();
    signal_set(core, done_word(pairing.theirs, pairing.me, index, pairing.cores), word_value(pairing.count, status));
  }
}

/// A receiver says what it expects. REQUIRES: it says that it is ready afterwards.
template <Core C>
void say_digest(C& core, const Pairing& pairing, std::uint64_t digest) {
  core.store(pairing.theirs.digests[pairing.me], digest);
}

/// What the partner expects. REQUIRES: hear_ready().
template <Core C>
std::uint64_t hear_digest(C& core, const Pairing& pairing) {
  return core.load(pairing.mine.digests[pairing.partner]);
}

}  // namespace shmem::kv
