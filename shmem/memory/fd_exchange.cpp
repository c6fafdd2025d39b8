// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/fd_exchange.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/fd_message.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;

/// Between two checks, and between two attempts to send to a PE whose queue is full.
constexpr milliseconds kCheckEach{50};
constexpr milliseconds kRetryEach{1};

struct Head {
  std::int32_t from = 0;
  std::int32_t gives = 0;
  base::RandomName secret{};  // the receiver's
};

/// As many as the kernel sends with a message: it closes those for which there is no room while the receiver waits.
constexpr std::size_t kMostSentFds = 253;

using ExchangeMessage = base::FdMessage<kMostSentFds, CMSG_SPACE(sizeof(ucred))>;

}  // namespace

/// One exchange.
class FdExchange::Round {
 public:
  Round(FdExchange& exchange, int mine, int me, std::span<const std::optional<Peer>> peers)
      : socket_(exchange.socket_.fd()),
        own_(exchange.address_),
        folder_(exchange.folder_),
        strangers_(exchange.socket_.strangers()),
        mine_(mine),
        me_(me),
        peers_(peers),
        fds_(peers.size()) {
    for (int pe = 0; pe < static_cast<int>(peers.size()); ++pe) {
      const auto& peer = peers[static_cast<std::size_t>(pe)];
      if (peer && pe != me) {
        if (mine >= 0) {
          to_send_.push_back(pe);
        }
        if (peer->gives) {
          awaited_.push_back(pe);
        }
      }
    }
  }

  Result<std::vector<base::UniqueFd>> run(const Check& check) {
    auto next_check = std::chrono::steady_clock::now() + kCheckEach;
    for (;;) {
      std::erase_if(to_send_, [this](int pe) { return send(pe); });
      while (receive()) {
      }
      if (to_send_.empty() && awaited_.empty()) {
        break;
      }
      pollfd arrival{socket_, POLLIN, 0};
      ::poll(&arrival, 1, static_cast<int>((to_send_.empty() ? kCheckEach : kRetryEach).count()));
      if (const auto now = std::chrono::steady_clock::now(); now >= next_check) {
        next_check = now + kCheckEach;
        if (auto ok = check(awaited_.empty() ? to_send_ : awaited_); !ok) {
          return ok.error();
        }
      }
    }
    if (!outcome_) {
      return outcome_.error();
    }
    return std::move(fds_);
  }

 private:
  void fail_once(Error error) {
    if (outcome_) {
      outcome_ = std::move(error);
    }
  }

  /// False: try again later.
  bool send(int pe) {
    if (deliver(pe, {&mine_, 1})) {
      return true;
    }
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS || errno == EINTR) {
      return false;
    }
    if (errno == ECONNREFUSED || errno == ENOENT) {  // it has ended, or has an error of its own
      return true;
    }
    fail_once(fail_errno(errno, "cannot hand the memory's file descriptor to another PE: sendmsg"));
    return deliver(pe, {}) || errno != EAGAIN;
  }

  bool deliver(int pe, std::span<const int> fds) const {
    const Address& address = peers_[static_cast<std::size_t>(pe)]->address;
    base::UnixAddress to(node_socket(address.name, folder_));
    const Head head{me_, fds.empty() ? 0 : 1, address.secret};
    ExchangeMessage message(&head, sizeof head);
    message.header.msg_name = &to.socket;
    message.header.msg_namelen = to.size;
    return message.send(socket_, fds) == static_cast<ssize_t>(sizeof head);
  }

  /// False: there is no message.
  bool receive() {
    Head head;
    ExchangeMessage message(&head, sizeof head);
    const ssize_t got = message.receive(socket_);
    if (got < 0) {
      return false;
    }
    std::vector<base::UniqueFd> fds;
    base::take_fds(message.header, [&](base::UniqueFd fd) { fds.push_back(std::move(fd)); });
    const auto sender = base::sender_of(message.header);
    const auto from = std::find(awaited_.begin(), awaited_.end(), head.from);
    if (got != static_cast<ssize_t>(sizeof head) || !sender || sender->uid != ::getuid() ||
        head.secret != own_.secret || from == awaited_.end() || fds.size() > 1) {
      strangers_.take(std::move(fds));  // not from one of our PEs
      return true;
    }
    if (head.gives == 0) {
      fail_once(fail(std::errc::bad_file_descriptor,
                     fmt::format("another PE could not hand over its file descriptor (its own message says why)")));
    } else if (fds.empty()) {
      fail_once(fail(std::errc::too_many_files_open,
                     "cannot take a file descriptor of another PE (is the limit on open files, ulimit -n, reached?)"));
    }
    if (!fds.empty()) {
      fds_[static_cast<std::size_t>(*from)] = std::move(fds.front());
    }
    awaited_.erase(from);
    return true;
  }

  const int socket_;
  const Address& own_;
  const std::string& folder_;
  base::Disposal& strangers_;
  const int mine_;
  const int me_;
  const std::span<const std::optional<Peer>> peers_;
  std::vector<int> to_send_;
  std::vector<int> awaited_;
  std::vector<base::UniqueFd> fds_;
  Result<void> outcome_;
};

Result<FdExchange> FdExchange::open(const std::string& folder) {
  if (auto ok = check_place_of_sockets(folder); !ok) {
    return ok.error();
  }
  const auto name = base::random_name();
  const auto secret = base::random_name();
  if (!name || !secret) {
    return name ? secret.error() : name.error();
  }
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return fail_errno(errno, "cannot make a Unix socket for the node's PEs: socket");
  }
  const int on = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return fail_errno(errno, "cannot make a Unix socket for the node's PEs: SO_PASSCRED");
  }
  const std::string socket_name = node_socket(*name, folder);
  const base::UnixAddress address(socket_name);
  if (::bind(socket.get(), address.get(), address.size) != 0) {
    return fail_errno(errno, "cannot make a Unix socket for the node's PEs: bind");
  }
  return FdExchange(NodeSocket(std::move(socket), socket_name), {*name, *secret}, folder);
}

Result<std::vector<base::UniqueFd>> FdExchange::exchange(int mine, int me, std::span<const std::optional<Peer>> peers,
                                                         const Check& check) {
  return Round(*this, mine, me, peers).run(check);
}

}  // namespace shmem
