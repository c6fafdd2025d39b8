// SPDX-License-Identifier: Apache-2.0
// How clients come to the server and go, whatever they do meanwhile.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/user.hpp"
#include "fake_device/server.hpp"

namespace fake_device {
namespace {

constexpr rlim_t kMaxSilent = 2048;
constexpr unsigned kAcceptsPerTurn = 16;

// Further clients wait in the socket's backlog. Most descriptors are for clients that do send VERSION.
std::size_t most_silent_clients() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return std::clamp<rlim_t>(known ? limit.rlim_cur / 4 : 0, 1, kMaxSilent);
}

}  // namespace

base::UniqueFd Server::open_spare() {
  return base::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

Result<void> Server::open_entrance(const std::string& path, unsigned mode, PortPool ports) {
  auto listener = Listener::open(path, mode);
  if (!listener) {
    return listener.error();
  }
  entrances_.push_back(std::make_unique<Entrance>(Entrance{
      .listener = *std::move(listener), .ports = std::move(ports), .silent = SilentClients(most_silent_clients())}));
  const auto index = static_cast<int>(entrances_.size() - 1);
  if (!control(EPOLL_CTL_ADD, Source::kListener, entrances_.back()->listener.fd(), index, EPOLLIN)) {
    return failure(fmt::format("cannot watch the socket {}", path), errno);
  }
  return {};
}

void Server::accept_some(Entrance& entrance) {
  for (unsigned turn = 0; turn < kAcceptsPerTurn && entrance.silent.room(now_); ++turn) {
    auto accepted = entrance.listener.accept();
    if (accepted.refused) {
      take(std::move(accepted.socket));
      log_.write(LogLevel::kWarning,
                 fmt::format("refused a client of user {}: only this user and root may connect", accepted.uid));
    } else if (accepted.socket) {
      if (entrance.silent.full()) {
        drop_silent(entrance);
      }
      add_session(entrance, std::move(accepted.socket));
    } else if (accepted.error == EMFILE || accepted.error == ENFILE) {
      if (!refuse_one(entrance)) {
        return;
      }
    } else if (accepted.error == EAGAIN || accepted.error == EWOULDBLOCK) {
      return;
    }
  }
}

// One that finds no memory is closed, and needs none for that.
void Server::add_session(Entrance& entrance, base::UniqueFd socket) {
  const int fd = socket.get();
  try {
    const auto account = account_of(fd);
    auto session = std::make_unique<Session>(Given(closer_, account, std::move(socket), /*is_connection=*/true),
                                             account, *this, entrance.ports, now_ + kSilenceLimit);
    if (!control(EPOLL_CTL_ADD, Source::kSession, fd, fd, EPOLLIN)) {
      log_.write(LogLevel::kError, fmt::format("cannot watch a client: {}", std::generic_category().message(errno)));
      return;
    }
    sessions_[fd] = {.session = std::move(session), .entrance = &entrance, .events = EPOLLIN};
    attention_.reserve(sessions_.size());
    entrance.silent.add(fd, now_);
  } catch (const std::bad_alloc&) {
    log_.write(LogLevel::kError, "refused a client: out of memory");
    drop(fd);
  }
}

std::shared_ptr<FdAccount> Server::account_of(int socket) {
  const auto peer = base::peer_of(socket);
  if (!peer) {
    return std::make_shared<FdAccount>();
  }
  auto user = users_[peer->uid].lock();
  if (!user) {
    std::erase_if(users_, [](const auto& entry) { return entry.second.expired(); });
    user = std::make_shared<FdUser>();
    users_[peer->uid] = user;
  }
  return std::make_shared<FdAccount>(std::move(user));
}

/// The socket of a client that does not become a session.
Given Server::take(base::UniqueFd socket) {
  auto account = account_of(socket.get());
  return {closer_, std::move(account), std::move(socket), /*is_connection=*/true};
}

// Otherwise the client would wait, and epoll would report the socket as readable for ever. False: there is no spare
// descriptor until the last client that was refused is closed.
bool Server::refuse_one(const Entrance& entrance) {
  if (!spare_) {
    spare_ = open_spare();
    return false;
  }
  log_.write(LogLevel::kError, "refused a client: too many open files (raise the limit, see ulimit -n)");
  spare_ = base::UniqueFd();
  auto accepted = entrance.listener.accept();
  if (accepted.socket) {
    take(std::move(accepted.socket));
  }
  spare_ = open_spare();
  return true;
}

void Server::watch_listeners() {
  for (std::size_t index = 0; index < entrances_.size(); ++index) {
    Entrance& entrance = *entrances_[index];
    const bool listen = entrance.silent.room(now_);
    if (listen != entrance.listening && control(EPOLL_CTL_MOD, Source::kListener, entrance.listener.fd(),
                                                static_cast<int>(index), listen ? EPOLLIN : 0U)) {
      entrance.listening = listen;
    }
  }
}

void Server::drop_silent(const Entrance& entrance) {
  log_.write(LogLevel::kWarning, "dropped a client that connected and said nothing");
  drop(entrance.silent.oldest());
}

void Server::settle(int fd) try {
  const auto found = sessions_.find(fd);
  if (found == sessions_.end()) {
    return;
  }
  Watched& watched = found->second;
  const Session& session = *watched.session;
  if (session.ended()) {
    drop(fd);
    return;
  }
  if (session.opened()) {
    watched.entrance->silent.remove(fd);
    deadlines_.set(fd, session.deadline());
  }
  resumptions_.set(fd, session.resumes() > now_ ? session.resumes() : kNever);
  watch_kick(watched);
  const std::uint32_t events = (session.wants_read() ? EPOLLIN : 0U) | (session.wants_write() ? EPOLLOUT : 0U);
  if (events != watched.events && control(EPOLL_CTL_MOD, Source::kSession, fd, fd, events)) {
    watched.events = events;
  }
} catch (const std::bad_alloc&) {
  drop(fd);
}

// Where the kernel watches no more for this user, the device does not sleep deeply enough to need that kick.
void Server::watch_kick(Watched& watched) {
  const int kick = watched.session->kick_fd();
  if (kick < 0 || watched.kick) {
    return;
  }
  const int socket = watched.session->socket();
  watched.kick = control(EPOLL_CTL_ADD, Source::kKick, kick, socket, EPOLLIN | EPOLLET);
  if (watched.kick) {
    unwatched_.erase(socket);
  } else if (unwatched_.insert(socket).second) {
    log_.write(LogLevel::kWarning, fmt::format("cannot watch for a client's kicks: {} (see fs.epoll.max_user_watches)",
                                               std::generic_category().message(errno)));
  }
}

void Server::drop(int fd) {
  const auto node = sessions_.extract(fd);
  if (node.empty()) {
    return;
  }
  node.mapped().entrance->silent.remove(fd);
  deadlines_.set(fd, kNever);
  resumptions_.set(fd, kNever);
  unwatched_.erase(fd);
  control(EPOLL_CTL_DEL, Source::kSession, fd, fd, 0);  // it is closed later
  if (node.mapped().kick) {
    // The client has it open too, so closing it here would not end the watch.
    control(EPOLL_CTL_DEL, Source::kKick, node.mapped().session->kick_fd(), fd, 0);
  }
}

}  // namespace fake_device
