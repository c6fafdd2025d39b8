// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/device.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "tests/fuzz/check.hpp"

namespace fuzz {
namespace {

using fake_device::Session;
using fake_device::Time;

constexpr Time kHandshakeLimit = 10'000'000'000;
constexpr unsigned kMostRounds = 100'000;

short ready_for(int fd, int events) {
  pollfd entry{.fd = fd, .events = static_cast<short>(events), .revents = 0};
  return ::poll(&entry, 1, 0) == 1 ? entry.revents : short{0};
}

}  // namespace

// Logs errors only: the messages about bad clients would be most of the output.
Device::Device(fake_device::EventSignaller& signaller, fake_device::Closer& closer)
    : log_(fake_device::LogLevel::kError),
      interrupts_(signaller, [] { return Time{0}; }),  // no signal takes long
      closer_(closer),
      engine_(fake_device::gba_profile(), kMembers + kClientPorts),
      ports_(kMembers, kClientPorts) {}

Device::~Device() {
  sessions_.clear();
}

base::UniqueFd Device::connect() {
  std::array<int, 2> ends{-1, -1};
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0, "a socket can be made");
  const auto account = std::make_shared<fake_device::FdAccount>();
  fake_device::Given socket(closer_, account, base::UniqueFd(ends[0]));
  sessions_.push_back(std::make_unique<Session>(std::move(socket), account, *this, ports_, now_ + kHandshakeLimit));
  return base::UniqueFd(ends[1]);
}

void Device::settle() {
  engine_.scan(now_);
  handle_kicks();
  bool busy = true;
  for (unsigned round = 0; busy; ++round) {
    check(round < kMostRounds, "the server comes to rest");
    busy = false;
    for (const auto& session : sessions_) {
      busy |= handle(*session);
    }
    drop_ended();
  }
  if (now_ >= engine_.next_deadline()) {
    engine_.expire(now_);
    drop_ended();
  }
  check(engine_.next_deadline() > now_, "a timer that has run out is stopped");
}

// The same as in the server's loop.
bool Device::handle(Session& session) {
  const int wanted = (session.wants_read() ? POLLIN : 0) | (session.wants_write() ? POLLOUT : 0);
  const short events = ready_for(session.socket(), wanted);
  if (session.ended() || (events == 0 && !session.under_way())) {
    return false;
  }
  if ((events & POLLOUT) != 0) {
    session.on_writable();
  }
  if (session.wants_read() || session.under_way()) {
    session.on_readable(now_);
  } else if ((events & (POLLHUP | POLLERR)) != 0) {
    session.on_hangup();
  }
  return true;
}

void Device::handle_kicks() {
  for (const auto& session : sessions_) {
    if (session->kick_fd() >= 0 && (ready_for(session->kick_fd(), POLLIN) & POLLIN) != 0) {
      session->on_kick(now_);
    }
  }
}

// The end of one session may end others.
void Device::drop_ended() {
  attention_.clear();
  for (bool any = true; any;) {
    any = std::erase_if(sessions_, [](const auto& session) { return session->ended(); }) != 0;
  }
}

void Device::pass(Time time) {
  now_ += time;
  for (const auto& session : sessions_) {
    if (session->deadline() <= now_) {
      session->on_deadline();
    }
  }
  drop_ended();
  settle();
}

void Device::sleep_and_wake() {
  check(!engine_.fall_asleep(now_) || !engine_.scan(now_), "a device that sleeps has nothing to do");
  engine_.awake();
}

}  // namespace fuzz
