// SPDX-License-Identifier: Apache-2.0
// The memory that oshrun shares with the PEs it starts: how they meet, and how the job ends. A sealed memfd that the
// PEs inherit; its number stands in their environment. Layout of version 2: one JobHeader, then a PeSlot for each PE.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shmem/cores/wait.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/memory/mapping.hpp"
#include "shmem/result.hpp"

namespace shmem {

// What oshrun puts into the environment of each PE.
constexpr const char* kJobFdVariable = "OSHRUN_JOB_FD";
constexpr const char* kJobRankVariable = "OSHRUN_RANK";
constexpr const char* kJobSizeVariable = "OSHRUN_SIZE";
/// Only where standard output is a pipe to oshrun and a terminal behind that: libshmem then ends its buffering at each
/// line, as at a terminal.
constexpr const char* kJobLinesVariable = "OSHRUN_STDOUT_LINES";
/// Only where standard error is a pipe to oshrun and a terminal behind that: for programs that show how far they are.
constexpr const char* kJobErrorTerminalVariable = "OSHRUN_STDERR_TERMINAL";

/// The most PEs of a job that oshrun starts on one node.
constexpr int kMaxLocalPes = 4096;
/// Who ended the job, when that was no PE.
constexpr std::int32_t kLauncher = -1;

constexpr std::uint32_t kJobMagic = 0x4e55524f;  // "ORUN"
constexpr std::uint32_t kJobVersion = 2;

/// How a job comes to its end before its time. `state` goes kNone -> kWriting -> kSet, once; who moved it to kWriting
/// writes the rest, and others read that after they have seen kSet.
struct JobEndWord {
  enum State : std::uint32_t { kNone, kWriting, kSet };
  std::atomic<std::uint32_t> state;
  std::int32_t pe;
  std::int32_t status;
  std::array<char, 500> reason;
};

struct JobHeader {
  // Written by the launcher before the first PE starts.
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t size;  // of the whole
  std::int32_t pes;
  std::int32_t processors;  // that the PEs may use, all together
  // Written by all PEs.
  std::atomic<std::uint32_t> arrived;  // PEs that have arrived in the open round
  SyncWord round;                      // the round last completed
  JobEndWord end;
};

/// What a PE gives to the others in one round.
struct Offering {
  static constexpr std::size_t kRoom = 504;
  std::uint64_t whole;  // bytes of the whole collective; a mismatch means that the PEs are not in the same one
  std::array<std::byte, kRoom> bytes;
};

enum class PeState : std::uint32_t { kAbsent, kJoined, kLeft };

struct PeSlot {
  // Written by the PE.
  std::atomic<PeState> state;
  std::atomic<std::int32_t> owner;   // the process that has joined; 0: none
  std::atomic<std::uint64_t> round;  // the round the PE arrived in last
  // Written by the launcher.
  std::atomic<std::uint32_t> exited;  // 1: the process that oshrun started for the PE is no more
  // Written by the PE. Round r uses offering r % 2: a PE reads the others' before it arrives in r + 1, and nobody
  // writes the same one again before r + 1 is over.
  std::array<Offering, 2> offerings;
};

// Launcher and library are built from one tree but may be installed apart: a change of these needs a new version.
static_assert(sizeof(JobHeader) == 640 && offsetof(JobHeader, round) == 64 && offsetof(JobHeader, end) == 128);
static_assert(sizeof(PeSlot) == 1048 && offsetof(PeSlot, exited) == 16 && offsetof(PeSlot, offerings) == 24);
static_assert(std::atomic<PeState>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

/// Why the job is to end.
struct JobEnd {
  std::int32_t pe;  // who said so, or kLauncher
  std::int32_t status;
  std::string reason;
};

/// Owns a mapping of it. end() and ended() may be called by any thread of any process; the rest is constant.
class JobMemory {
 public:
  /// The launcher's: new memory for `pes` PEs, which together run on so many processors (0: not known).
  static Result<JobMemory> create(int pes, int processors = 0);
  /// A PE's: `fd` is what it inherited, and stays open for the next time. An Error says what is wrong with it.
  static Result<JobMemory> attach(int fd, int pes);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] int pes() const { return header().pes; }
  [[nodiscard]] JobHeader& header() const { return *reinterpret_cast<JobHeader*>(mapping_.data()); }
  [[nodiscard]] PeSlot& slot(int pe) const {
    return reinterpret_cast<PeSlot*>(mapping_.data() + sizeof(JobHeader))[pe];
  }

  /// Asks everybody to end, and wakes who waits in a round or sleeps on the word's state. The first call counts, later
  /// ones do nothing.
  void end(std::int32_t pe, std::int32_t status, std::string_view reason) const;
  /// What end() was told. One load while nobody has called it.
  [[nodiscard]] std::optional<JobEnd> ended() const;

 private:
  JobMemory(UniqueFd fd, Mapping mapping) : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  UniqueFd fd_;  // none for a PE
  Mapping mapping_;
};

}  // namespace shmem
