// SPDX-License-Identifier: Apache-2.0
// Where oshrun writes what PEs print.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>

#include "shmem/memory/fd.hpp"

namespace shmem::launcher {

/// Writes to a descriptor without ever waiting for its reader; what cannot be written yet is kept. The descriptor's own
/// flags stay as they are: others, such as the shell, have it too. Used by one thread.
class Sink {
 public:
  /// `fd` stays open as long as the object, and is not closed by it.
  explicit Sink(int fd);

  void put(std::string_view bytes);
  /// True while bytes are kept.
  [[nodiscard]] bool is_pending() const { return !pending_.empty(); }
  /// What to poll for while bytes are kept; then call flush().
  [[nodiscard]] pollfd wanted() const { return {fd_, POLLOUT, 0}; }
  void flush();
  /// errno once nothing can be written any more, e.g. EPIPE; else 0. Nothing is kept then.
  [[nodiscard]] int error() const { return error_; }

 private:
  [[nodiscard]] ssize_t write(std::string_view bytes) const;

  UniqueFd own_;  // the same file, opened again so that writing to it does not wait; none if that cannot be had
  int fd_;
  bool is_socket_;
  int error_ = 0;
  std::string pending_;
};

}  // namespace shmem::launcher
