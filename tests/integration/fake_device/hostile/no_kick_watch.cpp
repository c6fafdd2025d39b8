// SPDX-License-Identifier: Apache-2.0
// A library to preload: epoll accepts no more eventfds, as if the user had reached fs.epoll.max_user_watches.
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

extern "C" __attribute__((visibility("default"))) int epoll_ctl(int epoll, int operation, int fd,
                                                                struct epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && (event->events & EPOLLET) != 0) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}
