// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/fd_passing.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "base/fd_message.hpp"
#include "base/user.hpp"
#include "shmem/bootstrap/message_text.hpp"

namespace shmem {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The interval at which a sleeping leader checks whether the job was aborted.
constexpr milliseconds kSlice{100};
/// A PE sends its number right after it has connected. A client that does not is not one of our PEs, most likely: it is
/// dropped if others need its place.
constexpr milliseconds kHelloLimit{5000};
/// How often a PE that has lost the leader looks for the reason, and for how long it sleeps after each look. Not a
/// deadline: on a busy machine the reason comes later, too.
constexpr int kNewsLooks = 100;
constexpr milliseconds kNewsPause{10};

void limit_waits(int socket, milliseconds limit) {
  limit = std::max(limit, milliseconds{1});  // 0 would be no limit
  const timeval time{.tv_sec = limit.count() / 1000, .tv_usec = (limit.count() % 1000) * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

/// With one byte, without which no descriptors are sent.
using Message = base::FdMessage<kMostPassedFds>;

bool send_fds(int socket, std::span<const int> fds) {
  assert(!fds.empty() && fds.size() <= kMostPassedFds);
  return Message("", 1).send(socket, fds, 0) == 1;
}

Result<std::vector<base::UniqueFd>> receive_fds(int socket) {
  char byte = 0;
  Message message(&byte, 1);
  const ssize_t got = message.receive(socket, 0);
  if (got < 0) {
    return fail_errno(errno == EAGAIN ? ETIMEDOUT : errno, "PE 0 gave no file descriptor");
  }
  if (got == 0) {
    return fail(std::errc::connection_reset, "PE 0 closed the connection (has it died?)");
  }
  std::vector<base::UniqueFd> fds;
  base::take_fds(message.header, [&](base::UniqueFd fd) { fds.push_back(std::move(fd)); });
  if (fds.empty() || (message.header.msg_flags & MSG_CTRUNC) != 0) {
    return fail(std::errc::too_many_files_open,
                "not all file descriptors came with PE 0's message (is the limit on open files, ulimit -n, reached?)");
  }
  return fds;
}

/// What a client has said: the number of its PE; -1 nothing yet; or nothing, if it is not one of our PEs.
std::optional<int> read_hello(int client) {
  std::int32_t pe = -1;
  Message message(&pe, sizeof pe);
  // If it has descriptors it stays, with them: the kernel would close them here.
  const ssize_t got = message.receive(client, MSG_DONTWAIT | MSG_PEEK, false);
  if (got < 0 && errno == EAGAIN) {
    return -1;
  }
  if (got != static_cast<ssize_t>(sizeof pe) || (message.header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 || pe < 1) {
    return std::nullopt;
  }
  message.receive(client, MSG_DONTWAIT, false);
  return pe;
}

std::vector<int> missing(const std::vector<bool>& served) {
  std::vector<int> pes;
  for (std::size_t pe = 1; pe < served.size(); ++pe) {
    if (!served[pe]) {
      pes.push_back(static_cast<int>(pe));
    }
  }
  return pes;
}

}  // namespace

Result<FdServer> FdServer::open(const std::string& folder) {
  if (auto ok = check_place_of_sockets(folder); !ok) {
    return ok.error();
  }
  const auto name = base::random_name();
  if (!name) {
    return name.error();
  }
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return fail_errno(errno, "cannot make a Unix socket for the node's PEs: socket");
  }
  const std::string socket_name = node_socket(*name, folder);
  const base::UnixAddress address(socket_name);
  if (::bind(socket.get(), address.get(), address.size) != 0) {
    return fail_errno(errno, fmt::format("cannot make a Unix socket for the node's PEs{}{}: bind",
                                         folder.empty() ? "" : " in ", folder));
  }
  NodeSocket bound(std::move(socket), socket_name);
  if (::listen(bound.fd(), SOMAXCONN) != 0) {
    return fail_errno(errno, "cannot make a Unix socket for the node's PEs: listen");
  }
  return FdServer(std::move(bound), *name);
}

/// One call of serve().
class FdServer::Round {
 public:
  Round(NodeSocket& socket, std::span<const int> fds, int pes)
      : socket_(socket), fds_(fds), served_(static_cast<std::size_t>(pes), false), waiting_(pes - 1) {}
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  ~Round() {
    for (Client& client : clients_) {
      socket_.strangers().close_socket(std::move(client.socket));
    }
  }

  [[nodiscard]] bool is_over() const { return waiting_ == 0; }
  [[nodiscard]] std::vector<int> missing() const { return shmem::missing(served_); }

  /// Serves those that have asked by now, and waits for others, for up to `limit`.
  Result<void> turn(milliseconds limit) {
    std::vector<pollfd> events;
    for (const Client& client : clients_) {
      events.push_back({.fd = client.socket.get(), .events = POLLIN, .revents = 0});
    }
    const bool has_room = clients_.size() < kMostClients && !socket_.strangers().is_behind();
    events.push_back({.fd = has_room ? socket_.fd() : -1, .events = POLLIN, .revents = 0});
    ::poll(events.data(), events.size(), static_cast<int>(limit.count()));
    auto ok = events.back().revents != 0 ? accept() : Result<void>();
    const auto now = Clock::now();
    const bool is_full = clients_.size() >= kMostClients;
    std::erase_if(clients_, [&](Client& client) {
      const bool is_over = answer(client.socket.get()) || (is_full && now >= client.until);
      if (is_over) {
        socket_.strangers().close_socket(std::move(client.socket));
      }
      return is_over;
    });
    return ok;
  }

 private:
  /// That have not said their number yet. If there are more, they wait to be accepted.
  static constexpr std::size_t kMostClients = 64;
  struct Client {
    base::UniqueFd socket;
    Clock::time_point until;
  };

  Result<void> accept() {
    base::UniqueFd client(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) {
      return errno == EINTR || errno == EAGAIN || errno == ECONNABORTED
                 ? Result<void>()
                 : fail_errno(errno, "cannot hand out the node's memory: accept");
    }
    // The name cannot be guessed, but /proc/net/unix lists it.
    if (base::is_peer_this_user(client.get())) {
      clients_.push_back({std::move(client), Clock::now() + kHelloLimit});
    } else {
      socket_.strangers().close_socket(std::move(client));
    }
    return {};
  }

  /// False: it has not said anything yet.
  bool answer(int client) {
    const auto pe = read_hello(client);
    if (!pe || *pe < 0) {
      return !pe;
    }
    const auto at = static_cast<std::size_t>(*pe);
    if (at < served_.size() && !served_[at] && send_fds(client, fds_)) {
      served_[at] = true;
      --waiting_;
    }
    return true;
  }

  NodeSocket& socket_;
  const std::span<const int> fds_;
  std::vector<bool> served_;
  int waiting_;
  std::vector<Client> clients_;
};

Result<void> FdServer::serve(std::span<const int> fds, int pes, Clock::time_point deadline,
                             const Bootstrap& bootstrap) {
  Round round(socket_, fds, pes);
  while (!round.is_over()) {
    if (const auto reason = bootstrap.aborted()) {
      return fail(std::errc::operation_canceled, *reason);
    }
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return fail(std::errc::timed_out, pe_list(round.missing()) + " did not fetch the node's memory in time");
    }
    if (auto ok = round.turn(std::min(left, kSlice)); !ok) {
      return ok.error();
    }
  }
  return {};
}

Result<FdClient> FdClient::open(const std::string& folder) {
  if (auto ok = check_place_of_sockets(folder); !ok) {
    return ok.error();
  }
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) {
    return fail_errno(errno, "cannot make a Unix socket to reach PE 0: socket");
  }
  return FdClient(std::move(socket), folder);
}

Result<std::vector<base::UniqueFd>> FdClient::fetch(const base::RandomName& name, int pe, milliseconds limit,
                                                    const Bootstrap& bootstrap) {
  auto fds = try_fetch(name, pe, limit);
  const bool gone =
      !fds && (fds.error().code == std::errc::connection_reset || fds.error().code == std::errc::connection_refused ||
               fds.error().code == std::errc::broken_pipe);
  // The leader leaves if another PE has died; the news of that may come a little later than its end.
  for (int look = 0; gone && look < kNewsLooks; ++look) {
    if (const auto reason = bootstrap.aborted()) {
      return fail(std::errc::operation_canceled, *reason);
    }
    std::this_thread::sleep_for(kNewsPause);
  }
  return fds;
}

Result<std::vector<base::UniqueFd>> FdClient::try_fetch(const base::RandomName& name, int pe, milliseconds limit) {
  const base::UnixAddress address(node_socket(name, folder_));
  // A connection to a Unix socket that a signal interrupts has not begun.
  const auto deadline = Clock::now() + limit;
  const auto connect = [&] {
    limit_waits(socket_.get(), std::chrono::ceil<milliseconds>(deadline - Clock::now()));
    const int result = ::connect(socket_.get(), address.get(), address.size);
    if (result != 0 && errno == EINTR && Clock::now() >= deadline) {
      errno = ETIMEDOUT;
    }
    return result;
  };
  if (base::retry(connect) != 0) {
    return fail_errno(errno == EAGAIN ? ETIMEDOUT : errno, "cannot reach PE 0: connect");
  }
  limit_waits(socket_.get(), limit);
  if (!base::is_peer_this_user(socket_.get())) {
    return fail(std::errc::permission_denied, "the socket of PE 0 belongs to another user");
  }
  const std::int32_t self = pe;
  if (base::retry([&] { return ::send(socket_.get(), &self, sizeof(self), MSG_NOSIGNAL); }) !=
      static_cast<ssize_t>(sizeof(self))) {
    return fail_errno(errno, "cannot reach PE 0: send");
  }
  return receive_fds(socket_.get());
}

}  // namespace shmem
