// SPDX-License-Identifier: Apache-2.0
// The end of what other processes have sent, and of their memory, in threads of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/forks.hpp"
#include "base/helper_thread.hpp"

namespace base {

/// So many ends that take long hold up no other one.
constexpr std::size_t kMostSlowEnds = 16;

/// The last process that unmaps memory, of one that was killed for instance, also frees it: that may take a second for
/// each GiB. And the close() of a descriptor that another process has sent takes as long as that process likes, as
/// does that of a connection that may have unread messages with descriptors. No call waits for that, nor does the
/// thread that notices deaths. Thread-safe. A forked child may destroy it, and close its copies of sockets, which ends
/// nothing for the parent; and nothing else.
class Disposal {
 public:
  Disposal();
  Disposal(const Disposal&) = delete;
  Disposal& operator=(const Disposal&) = delete;
  /// Ends the rest. What takes longer than a moment goes on in its thread.
  ~Disposal();

  /// Ends an object soon after the last call that uses it.
  void add(std::shared_ptr<const void> used) noexcept;
  /// Ends a thing that this call takes: a descriptor, a message.
  template <typename T>
  void take(T&& thing) noexcept {
    static_assert(!std::is_lvalue_reference_v<T>);
    try {
      add(std::make_shared<T>(std::forward<T>(thing)));
    } catch (const std::bad_alloc&) {
      // It ends with the caller's.
    }
  }
  /// Ends a Unix socket, and its connections if it listens: the other ends see that at once. If it has no unread
  /// messages, with descriptors that could make that wait, it is closed here, without a thread. (Not SOCK_STREAM.)
  template <typename Fd>
  void close_socket(Fd socket) noexcept {
    const bool is_ours = fork_ == forks();  // a forked child must not shut its parent's
    if (socket.get() >= 0 && is_ours && !empty_socket(socket.get())) {
      take(std::move(socket));
    }
  }
  /// So much waits for its end that the caller should not make more of it: each may take a descriptor.
  [[nodiscard]] bool is_behind() const;

 private:
  struct Queue;

  bool empty_socket(int socket) noexcept;

  const unsigned fork_ = forks();       // of the process that has the threads
  const std::shared_ptr<Queue> queue_;  // the threads have it, too
};

}  // namespace base
