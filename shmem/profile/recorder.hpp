// SPDX-License-Identifier: Apache-2.0
// Counts the calls of this PE into its PeTable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shmem/profile/shape.hpp"
#include "shmem/profile/table.hpp"

namespace shmem::profile {

/// A routine of the API, and where this process counts it. `line` is set by its first call, and constant then.
struct Routine {
  const char* name;
  bool has_ctx;   // the first argument is a context
  bool has_team;  // it is a team
  std::atomic<Line*> line{nullptr};
  Shape shape{};  // set before `line`
};

/// The argument of a call: its value, if it is a number or a handle, and the bytes of what it points to.
struct Argument {
  std::uint64_t value;
  std::uint64_t pointee;
};

/// One call, from construction to done(). Any thread. Counts nothing if this process is not a PE of oshrun --profile.
class Call {
 public:
  explicit Call(Routine& routine);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() = default;

  /// The call is made. `arguments`: all `count` of them.
  void done(const Argument* arguments, std::size_t count);

 private:
  const Routine& routine_;
  Line* line_;
  bool is_main_;  // in the thread that made this process's first call
  std::uint64_t begin_ = 0;
  std::uint64_t traced_since_ = 0;  // nanoseconds(), if calls are traced
};

}  // namespace shmem::profile
