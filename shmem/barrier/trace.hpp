// SPDX-License-Identifier: Apache-2.0
// SHMEM_TRACE: a file that chrome://tracing and Perfetto show, one process for each PE, with its barriers.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "shmem/barrier/trace_file.hpp"

namespace shmem {

/// One barrier, as one PE went through it. Times in nanoseconds of the steady clock.
struct BarrierEvent {
  int team;
  std::uint64_t number;
  const char* path;
  std::uint64_t arrived, left;
  int last;            // the PE that came last
  std::uint64_t skew;  // between the first and the last arrival
};

/// One PE's part of the file. Events are kept and written a second after the last time, or when they are many; what
/// cannot be written is dropped, with one message. Any thread.
class Trace {
 public:
  /// `zero`: what the file calls 0.
  Trace(TraceFile file, int pe, std::uint64_t zero);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() { flush(); }

  void name_team(int team, int size);
  void add(const BarrierEvent& event);
  void flush();

 private:
  void keep(const std::string& text);
  void write();

  std::mutex mutex_;
  TraceFile file_;
  const int pe_;
  const std::uint64_t zero_;
  std::string events_;
  bool failed_ = false;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace shmem
