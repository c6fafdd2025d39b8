// SPDX-License-Identifier: Apache-2.0
// How PEs that oshrun has started end early: each writes it into memory that it shares with oshrun, which tells the
// user once, whatever bootstrap the PEs use. A sealed memfd that the PEs inherit: a header, then an EndReport for each.
// By the header, oshrun also holds the PEs at their start for a debugger.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// "FD:PLACE", in the environment of each PE.
constexpr const char* kEndReportsVariable = "OSHRUN_END_REPORTS";

enum class EndKind : std::uint32_t {
  kNone,
  kTold,     // was told that the job ends
  kNoticed,  // noticed that another PE was gone
  kFailed,   // ends the job
  kSignal,   // is killed by a signal
};

/// Written by the PE's process; `kind` last.
struct EndReport {
  std::atomic<std::uint64_t> start;  // base::start_of(owner); 0: not known yet
  std::atomic<std::int32_t> owner;   // the process; 0: no process yet
  std::atomic<EndKind> kind;
  std::uint32_t order;  // among the reports of all PEs
  std::int32_t signal;
  std::uint64_t address;  // of the access that raised it, or 0
  // The message. kTold, kNoticed: before it the call that the PE waited in, or nothing, and a newline.
  std::array<char, 1504> text;
  std::array<char, 2560> frames;  // "OFFSET MODULE" in hexadecimal, one a line, the innermost call first
};
static_assert(sizeof(EndReport) == 4096);

/// A copy of a report.
struct PeEnd {
  EndKind kind = EndKind::kNone;
  std::uint32_t order = 0;
  int signal = 0;
  std::uint64_t address = 0;
  std::string text{};
  std::string frames{};
};

/// oshrun's end of the memory. Used by one thread.
class EndReports {
 public:
  /// `held`: PEs wait in shmem_init until release().
  static Result<EndReports> create(int pes, bool held = false);

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The number of reports so far.
  [[nodiscard]] std::uint32_t count() const;
  [[nodiscard]] PeEnd of(int place) const;
  /// Another process takes the place.
  void clear(int place) const;
  /// Lets PEs that are held go on.
  void release() const;

 private:
  EndReports(base::UniqueFd fd, base::Mapping memory) : fd_(std::move(fd)), memory_(std::move(memory)) {}

  base::UniqueFd fd_;
  base::Mapping memory_;
};

/// In a PE: takes its place in the memory, if oshrun has started it. Any number of times.
void attach_end_report();
/// In a PE: waits while oshrun holds the PEs. Ends with oshrun, too, which ends its PEs.
void wait_while_held();
/// True if oshrun tells the user, so that this process does not print `text`. The first report of a process counts.
bool report_end(EndKind kind, std::string_view text);
/// The report of this process, to be filled. nullptr if oshrun has not started it, or if it has reported already.
EndReport* own_end_report();
/// For signal handlers: claims the report of this process. nullptr if it has no report, or has reported already.
EndReport* claim_end_report();
/// Makes the claimed report known.
void publish_end_report(EndReport& report, EndKind kind);

}  // namespace shmem
