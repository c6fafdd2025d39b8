// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/selftest_peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace tool {

namespace {

constexpr std::uint64_t kTimeLimitNs = 5'000'000'000;
constexpr int kTimeLimitMs = 30'000;  // longer than the other process's own

struct Order {
  gba_group_handle handle;
  std::uint64_t barriers;
  std::uint64_t called;
};

template <typename T>
bool send(int fd, const T& message) {
  return ::write(fd, &message, sizeof message) == sizeof message;
}

/// Messages are shorter than what a pipe takes and gives at once.
template <typename T>
bool receive(int fd, T& message) {
  return ::read(fd, &message, sizeof message) == sizeof message;
}

PeerReport report_of(int error, std::string_view text, std::uint32_t port = 0) {
  PeerReport report{.error = error, .port = port, .text = {}};
  std::copy_n(text.begin(), std::min(text.size(), report.text.size() - 1), report.text.begin());
  return report;
}

PeerReport do_barriers(gba_group* group, const Order& order, int calls) {
  const std::uint64_t first_called = order.handle.sequence + order.barriers + 1;
  for (std::uint64_t k = order.handle.sequence + 1; k < first_called + order.called; ++k) {
    char call = 0;
    if (k >= first_called && !receive(calls, call)) {
      return report_of(-EPIPE, "the first process has stopped calling");
    }
    gba_group_arrive(group, k);
    if (const int error = gba_group_wait(group, k, kTimeLimitNs); error != 0) {
      return report_of(error, gba_error_text());
    }
  }
  return {};
}

/// The second process's whole life.
void serve(const std::string& path, int orders, int reports) {
  Order order{};
  if (!receive(orders, order)) {
    return;
  }
  const auto device = open_device(path);
  if (!device) {
    send(reports, report_of(device.error().error, device.error().text));
    return;
  }
  gba_group* joined = nullptr;
  const int error = gba_group_join(device->get(), &order.handle, 1, &joined);
  const GroupPointer group(joined);
  const auto info = info_of(device->get());
  send(reports, report_of(error, error == 0 ? "" : gba_error_text(), info ? info->port : 0));
  if (error != 0) {
    return;
  }
  const PeerReport done = do_barriers(group.get(), order, orders);
  char leave = 0;
  if (receive(orders, leave)) {
    send(reports, done);
  }
}

}  // namespace

Peer::Peer(pid_t pid, base::UniqueFd orders, base::UniqueFd reports)
    : pid_(pid), orders_(std::move(orders)), reports_(std::move(reports)) {}

std::unique_ptr<Peer> Peer::start(const std::string& path) {
  int to[2] = {-1, -1};
  int from[2] = {-1, -1};
  if (::pipe2(to, O_CLOEXEC) != 0) {
    return nullptr;
  }
  base::UniqueFd order_reader(to[0]);
  base::UniqueFd order_writer(to[1]);
  if (::pipe2(from, O_CLOEXEC) != 0) {
    return nullptr;
  }
  base::UniqueFd report_reader(from[0]);
  base::UniqueFd report_writer(from[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return nullptr;
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_IGN);
    { const base::UniqueFd closed(std::move(order_writer)); }
    { const base::UniqueFd closed(std::move(report_reader)); }
    if (::getppid() == parent) {
      serve(path, order_reader.get(), report_writer.get());
    }
    ::_exit(0);
  }
  return std::unique_ptr<Peer>(new Peer(pid, std::move(order_writer), std::move(report_reader)));
}

Peer::~Peer() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

PeerReport Peer::next_report() {
  pollfd event{.fd = reports_.get(), .events = POLLIN, .revents = 0};
  PeerReport report;
  if (::poll(&event, 1, kTimeLimitMs) <= 0) {
    return report_of(-ETIMEDOUT, "the second process does not answer");
  }
  if (!receive(reports_.get(), report)) {
    return report_of(-EPIPE, "the second process has ended");
  }
  return report;
}

PeerReport Peer::join(const gba_group_handle& handle, std::uint64_t barriers, std::uint64_t called) {
  send(orders_.get(), Order{.handle = handle, .barriers = barriers, .called = called});
  return next_report();
}

void Peer::call() {
  send(orders_.get(), char{1});
}

PeerReport Peer::leave() {
  send(orders_.get(), char{1});
  return next_report();
}

}  // namespace tool
