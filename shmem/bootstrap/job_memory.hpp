// SPDX-License-Identifier: Apache-2.0
// The memory that oshrun shares with the PEs it starts, for their collective steps and for the end of the job. A sealed
// memfd that the PEs inherit, with its number in their environment. Layout of version 4: one JobHeader, then a PeSlot
// for each PE.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "shmem/cores/wait.hpp"
#include "shmem/result.hpp"

namespace shmem {

// What oshrun puts into the environment of each PE.
constexpr const char* kJobFdVariable = "OSHRUN_JOB_FD";
constexpr const char* kJobRankVariable = "OSHRUN_RANK";
constexpr const char* kJobSizeVariable = "OSHRUN_SIZE";
/// Set in a job on several nodes: oshrun is the server of SHMEM_UID_SESSION_ID, so that PE 0 does not listen there.
constexpr const char* kJobServedVariable = "OSHRUN_SERVES";
/// Set if standard output is a pipe to oshrun, which writes to a terminal: libshmem then buffers by line, as for a
/// terminal.
constexpr const char* kJobLinesVariable = "OSHRUN_STDOUT_LINES";
/// Set if standard error is a pipe to oshrun, which writes to a terminal: for programs that show their progress.
constexpr const char* kJobErrorTerminalVariable = "OSHRUN_STDERR_TERMINAL";

/// The most PEs of a job that oshrun starts on one node.
constexpr int kMaxLocalPes = 4096;
/// In place of a PE: the launcher ended the job.
constexpr std::int32_t kLauncher = -1;

constexpr std::uint32_t kJobMagic = 0x4e55524f;  // "ORUN"
constexpr std::uint32_t kJobVersion = 4;

/// The early end of a job. `state` goes kNone -> kWriting -> kSet, once. The process that moved it to kWriting writes
/// the rest; others read that after they have seen kSet.
struct JobEndWord {
  enum State : std::uint32_t { kNone, kWriting, kSet };
  std::atomic<std::uint32_t> state;
  std::int32_t pe;
  std::int32_t status;
  std::array<char, 500> reason;
};

/// Why the job ends.
struct JobEnd {
  std::int32_t pe;  // that ended it, or kLauncher
  std::int32_t status;
  std::string reason;
};
/// Wakes PEs that sleep on the word's state. False, without an effect, unless this is the first call.
bool set_end(JobEndWord& word, const JobEnd& end);
/// The arguments of set_end(). One load before that.
std::optional<JobEnd> read_end(const JobEndWord& word);

struct JobHeader {
  // Written by the launcher before the first PE starts.
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t size;  // of the whole memory
  std::int32_t pes;
  std::int32_t processors;  // that the PEs together may use
  // Written by all PEs.
  std::atomic<std::uint32_t> arrived;  // PEs that have arrived in the open round
  std::atomic<std::uint32_t>
      survives;    // 1: the job goes on when a PE dies; an older launcher does not look, and ends it
  SyncWord round;  // the round last completed
  JobEndWord end;
};

/// The data of a PE in one round.
struct Offering {
  static constexpr std::size_t kRoom = 504;
  std::uint64_t whole;  // bytes of the whole collective; a mismatch means that the PEs are in different ones
  std::array<std::byte, kRoom> bytes;
};

enum class PeState : std::uint32_t { kAbsent, kJoined, kLeft };

struct PeSlot {
  // Written by the PE.
  std::atomic<PeState> state;
  // The process that has joined; 0: none. Negative: minus the process, which the other PEs have left out. They store
  // that by one atomic step, so it never hits a process that has taken the place since.
  std::atomic<std::int32_t> owner;
  std::atomic<std::uint64_t> round;  // the last round in which the PE has arrived
  // Written by the launcher.
  std::atomic<std::uint32_t> exited;  // 0, or 1 + its wait status once the process that oshrun started has ended
  std::atomic<std::uint32_t> record;  // 0, or 1 + the descriptor of its StartRecord; written by the PE
  // Written by the PE: base::start_of(owner), by which another process with its number is known. 0: not known yet.
  std::atomic<std::uint64_t> start;
  // Written by the PE. Round r uses offering r % 2: a PE reads the others' before it arrives in r + 1, and no PE
  // overwrites its offering before r + 1 is over.
  std::array<Offering, 2> offerings;
};

// The launcher and the library may be of different builds: a change of these needs a new version.
static_assert(sizeof(JobHeader) == 640 && offsetof(JobHeader, round) == 64 && offsetof(JobHeader, end) == 128);
static_assert(sizeof(PeSlot) == 1056 && offsetof(PeSlot, exited) == 16 && offsetof(PeSlot, record) == 20 &&
              offsetof(PeSlot, start) == 24 && offsetof(PeSlot, offerings) == 32);
static_assert(std::atomic<PeState>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

/// Owns a mapping of the memory. Any thread of any process may call end() and ended(); the rest is constant.
class JobMemory {
 public:
  /// Called by the launcher: new memory for `pes` PEs, which together use `processors` processors (0: unknown).
  static Result<JobMemory> create(int pes, int processors = 0);
  /// Called by a PE: `fd` was inherited, and stays open for the next start of the library.
  static Result<JobMemory> attach(int fd, int pes);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] int pes() const { return header().pes; }
  [[nodiscard]] JobHeader& header() const { return *reinterpret_cast<JobHeader*>(mapping_.data()); }
  [[nodiscard]] PeSlot& slot(int pe) const {
    return reinterpret_cast<PeSlot*>(mapping_.data() + sizeof(JobHeader))[pe];
  }

  /// Ends the job: wakes PEs that wait in a round or sleep on the word's state. Only the first call has an effect.
  void end(std::int32_t pe, std::int32_t status, std::string_view reason) const;
  /// The arguments of end(). One load before end() is called.
  [[nodiscard]] std::optional<JobEnd> ended() const;

 private:
  JobMemory(base::UniqueFd fd, base::Mapping mapping) : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  base::UniqueFd fd_;  // the launcher's; empty in a PE
  base::Mapping mapping_;
};

}  // namespace shmem
