// SPDX-License-Identifier: Apache-2.0
// oshrun --profile: what the PEs have counted, and the report on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shmem/profile/table.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

struct RoutineCounts {
  std::string name;
  profile::Kind kind{};
  std::uint64_t calls = 0, bytes = 0, nanoseconds = 0;
};

/// Bytes that a PE has put to, and got from, another one.
struct PairCounts {
  int pe = 0;
  std::uint64_t put = 0, got = 0;
};

/// One PE. It has made no call if `routines` is empty.
struct PeCounts {
  int pe = 0;
  std::string host;
  std::uint64_t nanoseconds = 0;          // from the beginning of shmem_init to the end of shmem_finalize or of the job
  std::string present;                    // the call that it was in at the end of the job; empty: none
  std::uint64_t present_nanoseconds = 0;  // how long
  std::vector<RoutineCounts> routines;
  std::vector<PairCounts> pairs;
};

/// Owns the memory in which the PEs of this node count. Used by one thread.
class Profiler {
 public:
  /// PEs `first` to `first` + `count` - 1 of `total`. An Error also if the library that counts is not there.
  static Result<Profiler> create(int first, int count, int total);

  [[nodiscard]] int fd() const { return memory_.fd(); }
  /// For LD_PRELOAD of the PEs: the library, behind what is in there already.
  [[nodiscard]] std::string preloaded(const char* before) const;
  /// What they have counted so far.
  [[nodiscard]] std::vector<PeCounts> counts(const std::string& host) const;

 private:
  Profiler(profile::Memory memory, std::string library);

  profile::Memory memory_;
  std::string library_;
  std::uint64_t ticks_, nanoseconds_;  // at the same moment
};

/// What stands before encode_counts()'s text in the output of a node's oshrun. The rest of the output is the text.
inline constexpr std::string_view kNodeProfile = "\x01oshrun-profile\n";
std::string encode_counts(const std::vector<PeCounts>& pes);
/// Malformed lines are skipped.
std::vector<PeCounts> decode_counts(const std::string& text);

/// The report as text, and the bytes between PEs as a picture (SVG). `total`: PEs of the job.
std::string report_text(const std::vector<PeCounts>& pes, int total);
std::string report_picture(const std::vector<PeCounts>& pes, int total);
/// Writes both, to `prefix`.txt and `prefix`.svg, and returns what to say about it.
std::string write_report(const std::vector<PeCounts>& pes, int total, const std::string& prefix);

}  // namespace shmem::launcher
