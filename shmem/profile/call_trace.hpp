// SPDX-License-Identifier: Apache-2.0
// The calls of a PE in the file of SHMEM_TRACE, which libshmem has begun and writes its barriers to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "shmem/barrier/trace.hpp"
#include "shmem/profile/table.hpp"

namespace shmem::profile {

/// Owns the file's descriptor. Any thread.
class CallTrace {
 public:
  /// The file at `path` or, of another node than the first, at `path`.1 and so on: the one that this node's PEs have
  /// begun, whose first PE is process `first`. Null if there is none, as without SHMEM_TRACE.
  static std::unique_ptr<CallTrace> open(const std::string& path, int first, int pe);
  CallTrace(const CallTrace&) = delete;
  CallTrace& operator=(const CallTrace&) = delete;
  ~CallTrace() = default;

  struct Event {
    const char* routine;
    Kind kind;
    std::uint64_t begin, end;  // nanoseconds()
    std::uint64_t bytes;
    int target;  // the other PE; -1: none
  };
  void add(const Event& event);
  void flush();

 private:
  CallTrace(TraceFile file, int pe, std::uint64_t zero);
  void write();

  std::mutex mutex_;
  TraceFile file_;
  const int pe_;
  const std::uint64_t zero_;  // the time that the file counts from
  std::string events_;
  std::uint64_t written_;
};

}  // namespace shmem::profile
