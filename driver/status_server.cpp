// SPDX-License-Identifier: Apache-2.0
#include "driver/status_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/forks.hpp"
#include "base/memfd.hpp"
#include "base/signals_blocked.hpp"
#include "base/unix_address.hpp"
#include "base/user.hpp"
#include "driver/device.hpp"
#include "driver/group_status.hpp"
#include "driver/status_socket.hpp"
#include "driver/vfio_user_channel.hpp"

namespace gba {

namespace {

using base::UniqueFd;

constexpr int kBacklog = 8;
constexpr unsigned kMostNames = 16;
/// Between two clients: clients cannot keep this process or the device busy.
constexpr int kPauseMs = 10;
/// The application may lock all its memory.
constexpr std::size_t kStack = std::size_t{256} << 10;

bool is_turned_off() {
  const char* const variable = std::getenv("GBA_STATUS");
  return variable != nullptr && std::string_view(variable) == "off";
}

bool bind_to(int listener, const std::string& key) {
  for (unsigned number = 0; number < kMostNames; ++number) {
    const auto address = base::UnixAddress::of_text("@" + status_name(key, ::getpid(), number));
    if (::bind(listener, address.get(), address.size) == 0) {
      return true;
    }
  }
  return false;
}

bool may_look(int client) {
  const auto peer = base::peer_of(client);
  return peer && (peer->uid == 0 || base::is_this_user(peer->uid));
}

/// Without a wait: a client that does not read gets nothing more.
void send_descriptor(int client, int descriptor) {
  constexpr std::array kAlongside{std::byte{}};
  [[maybe_unused]] const auto sent =
      send_bytes(client, kAlongside, std::array{descriptor}, Deadline::after(std::chrono::nanoseconds(0)));
}

bool write_at(int file, const void* from, std::size_t bytes, std::size_t to) {
  return ::pwrite(file, from, bytes, static_cast<off_t>(to)) == static_cast<ssize_t>(bytes);
}

}  // namespace

std::unique_ptr<StatusServer> StatusServer::start(Device& device, const std::string& key) {
  if (is_turned_off()) {
    return nullptr;
  }
  // Not a wire::Listener: wire is above libgba.
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener || !wake || !bind_to(listener.get(), key) || ::listen(listener.get(), kBacklog) != 0) {
    return nullptr;
  }
  std::unique_ptr<StatusServer> server(new StatusServer(device, std::move(listener), std::move(wake)));
  // Not a base::HelperThread: std::thread cannot choose its stack.
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  const bool started = [&] {
    const base::SignalsBlocked masked;
    return ::pthread_create(&server->thread_, &attributes, run, server.get()) == 0;
  }();
  ::pthread_attr_destroy(&attributes);
  if (!started) {
    server->thread_ = {};
    return nullptr;
  }
  return server;
}

StatusServer::StatusServer(Device& device, UniqueFd listener, UniqueFd wake)
    : device_(device), fork_(base::forks()), listener_(std::move(listener)), wake_(std::move(wake)) {}

StatusServer::~StatusServer() {
  if (thread_ == pthread_t{} || fork_ != base::forks()) {
    return;
  }
  ending_.store(true, std::memory_order_relaxed);
  ::eventfd_write(wake_.get(), 1);
  ::pthread_join(thread_, nullptr);
  disposal_.close_socket(std::move(listener_));
}

void* StatusServer::run(void* server) {
  ::pthread_setname_np(::pthread_self(), "gba-status");
  static_cast<StatusServer*>(server)->serve();
  return nullptr;
}

void StatusServer::serve() {
  std::array<pollfd, 3> events{pollfd{wake_.get(), POLLIN, 0}, pollfd{listener_.get(), POLLIN, 0},
                               device_.backend().loss_event()};
  for (;;) {
    ::poll(events.data(), events.size(), -1);
    if (ending_.load(std::memory_order_relaxed)) {
      return;
    }
    if (events[2].revents != 0) {
      if (!notice_loss()) {
        ::poll(events.data(), 1, kPauseMs);
        continue;
      }
      events[2].fd = -1;  // the event stays
    }
    if (events[1].revents == 0) {
      continue;
    }
    if (!disposal_.is_behind()) {
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (client && may_look(client.get())) {
        answer(client.get());
      }
      disposal_.close_socket(std::move(client));
    }
    ::poll(events.data(), 1, kPauseMs);
  }
}

bool StatusServer::notice_loss() try {
  device_.backend().check_lost();
  return true;
} catch (const std::exception&) {
  return false;  // out of memory: the next look may find some
}

void StatusServer::answer(int client) try {
  if (const auto file = report()) {
    send_descriptor(client, file->get());
  }
} catch (const std::exception&) {
  // Out of memory: the client sees the end of the connection.
}

Result<UniqueFd> StatusServer::report() {
  StatusReport head;
  head.info = device_.info();
  head.counters = device_.counters().value_or(gba_device_counters{});
  const auto limit = device_.group_limit().value_or(GroupLimit{});
  head.group_limit = limit.most;
  head.groups_held = limit.held;
  if (const auto healthy = device_.check_condition(); !healthy) {
    head.condition = -static_cast<std::int32_t>(healthy.error().code);
    const auto length = std::min(healthy.error().text.size(), sizeof head.condition_text - 1);
    std::memcpy(static_cast<char*>(head.condition_text), healthy.error().text.data(), length);
  }
  std::vector<gba_group_status> groups;
  for (std::uint32_t group = 0; group < device_.facts().groups && !ending_.load(std::memory_order_relaxed); ++group) {
    const auto status = read_group_status(device_, group);
    if (!status) {
      break;  // the device is lost, which `condition` says, or will say next time
    }
    if (status->member_count != 0) {
      groups.push_back(*status);
    }
  }
  head.groups = static_cast<std::uint32_t>(groups.size());
  const std::size_t bytes = groups.size() * sizeof(gba_group_status);
  auto file = base::create_memfd("gba-status", sizeof head + bytes);
  if (file &&
      !(write_at(file->get(), &head, sizeof head, 0) && write_at(file->get(), groups.data(), bytes, sizeof head))) {
    return fail_errno(errno, "gba: cannot write a status report");
  }
  return file;
}

}  // namespace gba
