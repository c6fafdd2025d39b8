// SPDX-License-Identifier: Apache-2.0
// SHMEM_TRACE: a file for chrome://tracing and Perfetto, with each PE's barriers as one process.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// A file with one JSON array that several processes append to. It is valid whenever no process is writing, also after
/// one was killed.
///
/// Owns the file's descriptor. Used by one thread at a time.
class TraceFile {
 public:
  /// Empties or creates the file unless it is already one of this `job`: text without quotes, different for each job.
  static Result<TraceFile> open(const std::string& path, const std::string& job);

  /// Appends elements, separated by commas. An Error if that takes more than some seconds, or the file now belongs to
  /// another job.
  Result<void> append(std::string_view elements);

 private:
  TraceFile(std::string path, const std::string& job, base::UniqueFd fd);
  Result<void> begin();
  [[nodiscard]] bool is_ours() const;
  [[nodiscard]] std::int64_t end_of_elements() const;
  Result<void> put(std::string_view text, std::int64_t offset) const;
  [[nodiscard]] Error failed(const char* doing) const;

  std::string path_;
  std::string head_;  // the beginning of the file
  base::UniqueFd fd_;
};

/// One barrier of one PE. Times in nanoseconds of the steady clock.
struct BarrierEvent {
  int team;
  std::uint64_t number;
  const char* path;
  std::uint64_t arrived, left;
  int last;            // the PE that arrived last
  std::uint64_t skew;  // between the first and the last arrival
};

/// One PE's part of the file. Events are collected and written once a second, or when there are many; events that
/// cannot be written are dropped, with one message. Any thread.
class Trace {
 public:
  /// `zero`: the time that the file counts from.
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
