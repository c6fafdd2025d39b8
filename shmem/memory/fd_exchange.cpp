// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/fd_exchange.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

/// A message with room for credentials and descriptors.
struct FdMessage {
  Head head{};
  iovec data{&head, sizeof head};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(kMostSentFds * sizeof(int))> control{};
  msghdr header{};

  FdMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
  }
  FdMessage(const FdMessage&) = delete;
  FdMessage& operator=(const FdMessage&) = delete;
  ~FdMessage() = default;

  void attach(int fd) { base::attach_fds(header, control, {&fd, 1}); }
};

/// What came with a message.
struct Attached {
  uid_t user = static_cast<uid_t>(-1);
  std::vector<base::UniqueFd> fds;
};

Attached attached_to(msghdr& message) {
  Attached attached;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS &&
        part->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
      attached.user = sender.uid;
    }
  }
  base::take_fds(message, [&](base::UniqueFd fd) { attached.fds.push_back(std::move(fd)); });
  return attached;
}

}  // namespace

/// One exchange.
class FdExchange::Round {
 public:
  Round(const FdExchange& exchange, int mine, int me, std::span<const std::optional<Peer>> peers)
      : socket_(exchange.socket_.get()),
        own_(exchange.address_),
        folder_(exchange.folder_),
        strangers_(*exchange.strangers_),
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
    FdMessage message;
    message.head = {me_, 1, peers_[static_cast<std::size_t>(pe)]->address.secret};
    message.attach(mine_);
    if (deliver(message, pe)) {
      return true;
    }
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS || errno == EINTR) {
      return false;
    }
    if (errno == ECONNREFUSED || errno == ENOENT) {  // it has ended, or has an error of its own
      return true;
    }
    fail_once(fail_errno(errno, "cannot hand the memory's file descriptor to another PE: sendmsg"));
    FdMessage nothing;
    nothing.head = {me_, 0, peers_[static_cast<std::size_t>(pe)]->address.secret};
    return deliver(nothing, pe) || errno != EAGAIN;
  }

  bool deliver(FdMessage& message, int pe) {
    NodeSocket to(peers_[static_cast<std::size_t>(pe)]->address.name, folder_);
    message.header.msg_name = &to.socket;
    message.header.msg_namelen = to.size;
    const ssize_t sent = ::sendmsg(socket_, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL);
    message.header.msg_name = nullptr;
    return sent == static_cast<ssize_t>(sizeof(Head));
  }

  /// False: there is no message.
  bool receive() {
    FdMessage message;
    message.header.msg_control = message.control.data();
    message.header.msg_controllen = message.control.size();
    const ssize_t got = ::recvmsg(socket_, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
      return errno == EINTR;
    }
    Attached attached = attached_to(message.header);
    const auto from = std::find(awaited_.begin(), awaited_.end(), message.head.from);
    if (got != static_cast<ssize_t>(sizeof(Head)) || attached.user != ::getuid() ||
        message.head.secret != own_.secret || from == awaited_.end() || attached.fds.size() > 1) {
      strangers_.take(std::move(attached.fds));  // not from one of our PEs
      return true;
    }
    if (message.head.gives == 0) {
      fail_once(fail(std::errc::bad_file_descriptor,
                     fmt::format("another PE could not hand over its file descriptor (its own message says why)")));
    } else if (attached.fds.empty()) {
      fail_once(fail(std::errc::too_many_files_open,
                     "cannot take a file descriptor of another PE (is the limit on open files, ulimit -n, reached?)"));
    }
    if (!attached.fds.empty()) {
      fds_[static_cast<std::size_t>(*from)] = std::move(attached.fds.front());
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
  const NodeSocket address(*name, folder);
  if (::bind(socket.get(), address.get(), address.size) != 0) {
    return fail_errno(errno, "cannot make a Unix socket for the node's PEs: bind");
  }
  return FdExchange(std::move(socket), {*name, *secret}, folder, SocketFile(address.path));
}

Result<std::vector<base::UniqueFd>> FdExchange::exchange(int mine, int me, std::span<const std::optional<Peer>> peers,
                                                         const Check& check) {
  return Round(*this, mine, me, peers).run(check);
}

}  // namespace shmem
