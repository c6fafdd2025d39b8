// SPDX-License-Identifier: Apache-2.0
#include "fake_device/event_signaller.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace fake_device {

namespace {

constexpr unsigned kRing = 64;  // completions; taken out all at once, since that is a system call too

void look_and_write(int eventfd) {
  pollfd ready{.fd = eventfd, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(eventfd, &one, sizeof one);
  }
}

}  // namespace

EventSignaller::EventSignaller() : nothing_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  if (!nothing_ || ::syscall(SYS_io_setup, kRing, &context_) != 0) {
    context_ = 0;
  } else if (!works()) {
    ::syscall(SYS_io_destroy, context_);
    context_ = 0;
  }
}

EventSignaller::~EventSignaller() {
  if (context_ != 0) {
    ::syscall(SYS_io_destroy, context_);
  }
}

// One that the kernel has no memory for is lost: a look and a write could wait for the client, with everyone else.
void EventSignaller::signal(int eventfd) {
  if (!never_waits()) {
    look_and_write(eventfd);
  } else if (!submit(eventfd)) {
    forget_completions();
    submit(eventfd);
  }
}

// It is complete when the call returns.
bool EventSignaller::submit(int eventfd) {
  if (outstanding_ == kRing) {
    forget_completions();
  }
  iocb request{};
  request.aio_lio_opcode = IOCB_CMD_PREAD;
  request.aio_fildes = static_cast<std::uint32_t>(nothing_.get());
  request.aio_flags = IOCB_FLAG_RESFD;
  request.aio_resfd = static_cast<std::uint32_t>(eventfd);
  std::array<iocb*, 1> requests{&request};
  const bool submitted = ::syscall(SYS_io_submit, context_, 1L, requests.data()) == 1;
  outstanding_ += submitted ? 1 : 0;
  return submitted;
}

void EventSignaller::forget_completions() {
  std::array<io_event, kRing> events{};
  ::syscall(SYS_io_getevents, context_, 0L, long{kRing}, events.data(), nullptr);
  outstanding_ = 0;
}

bool EventSignaller::works() {
  const base::UniqueFd probe(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::uint64_t count = 0;
  return probe && submit(probe.get()) && ::read(probe.get(), &count, sizeof count) == sizeof count && count == 1;
}

}  // namespace fake_device
