// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/channel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/fd_message.hpp"
#include "base/folder.hpp"
#include "base/user.hpp"

namespace shmem::exchange {
namespace {

constexpr int kBacklog = 128;

struct SeatAddress {
  sockaddr_un socket{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size = 0;
  base::UniqueFd folder{};  // by which the path goes, if it would be too long
  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&socket); }
  /// REQUIRES: there is room.
  void set(std::size_t begin, const std::string& name) {
    std::memcpy(socket.sun_path + begin, name.data(), std::min(name.size(), sizeof(socket.sun_path) - begin));
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + begin + name.size());
  }
};

std::string file_of(const MeetingPlace& place, std::uint32_t seat) {
  return fmt::format("{}.{}", place.exchange, seat);
}
std::string path_of(const MeetingPlace& place, std::uint32_t seat) {
  return place.folder.empty() ? std::string() : place.folder + "/" + file_of(place, seat);
}

SeatAddress address_of(const MeetingPlace& place, std::uint32_t seat) {
  SeatAddress address;
  if (place.folder.empty()) {
    // The user is in the name, so that two users may have exchanges of one name. A leading 0: not in the file system.
    static_assert(sizeof("shmem-exchange/4294967295//63") + kMostNameBytes + kMostNodeBytes <
                  sizeof(sockaddr_un::sun_path));
    address.set(1, fmt::format("shmem-exchange/{}/{}/{}", ::geteuid(), place.exchange, seat));
    return address;
  }
  std::string path = path_of(place, seat);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    static_assert(sizeof("/proc/self/fd/2147483647/.63") + kMostNameBytes + kMostNodeBytes <
                  sizeof(sockaddr_un::sun_path));
    address.folder.reset(::open(place.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    path = fmt::format("/proc/self/fd/{}/{}", address.folder.get(), file_of(place, seat));
  }
  address.set(0, path);
  return address;
}

base::UniqueFd new_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

ucred credentials_of(int socket) {
  ucred peer{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = static_cast<gid_t>(-1)};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    peer.uid = static_cast<uid_t>(-1);
  }
  return peer;
}

/// The parts of a message for the kernel.
struct Envelope {
  iovec data{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostMessageFds * sizeof(int))> control{};
  msghdr header{};

  explicit Envelope(Message& message) {
    data = {.iov_base = &message, .iov_len = sizeof message};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
  ~Envelope() = default;
};

ssize_t receive_bytes(int socket, msghdr& header, int flags) {
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, flags | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

Result<Channel> Channel::connect(const MeetingPlace& place, std::uint32_t seat) {
  base::UniqueFd socket = new_socket();
  const SeatAddress address = address_of(place, seat);
  if (!socket || ::connect(socket.get(), address.data(), address.size) != 0) {
    const int error = errno == ENOENT ? ECONNREFUSED : errno;  // in a folder: no member has had this seat yet
    return fail_errno(error, fmt::format("cannot connect to seat {} of exchange {}", seat, place.exchange));
  }
  return Channel(std::move(socket));
}

pid_t Channel::peer() const {
  return credentials_of(fd()).pid;
}

bool Channel::is_our_user() const {
  return base::is_this_user(credentials_of(fd()).uid);
}

std::errc Channel::send(const Message& message, std::span<const int> files) {
  Message copy = message;
  Envelope envelope(copy);
  if (!files.empty()) {
    base::attach_fds(envelope.header, envelope.control, files);
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(fd(), &envelope.header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? static_cast<std::errc>(errno) : std::errc{};
}

void Channel::shut() {
  ::shutdown(fd(), SHUT_RDWR);
}

std::errc Channel::receive(std::optional<Received>& received, std::size_t most_files) {
  received.reset();
  Received came;
  Envelope envelope(came.message);
  if (most_files > 0) {
    envelope.header.msg_control = envelope.control.data();
    envelope.header.msg_controllen = envelope.control.size();
  }
  // The message stays, with its files: what the kernel cannot hand over it would otherwise close here.
  const ssize_t got = receive_bytes(fd(), envelope.header, MSG_PEEK | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return {};
  }
  if (got <= 0) {
    return std::errc::connection_reset;
  }
  std::size_t files = 0;
  base::take_fds(envelope.header, [&](base::UniqueFd file) { came.files[files++] = std::move(file); });
  const int flags = envelope.header.msg_flags;
  received = std::move(came);
  if ((flags & MSG_CTRUNC) != 0) {
    return files < most_files ? std::errc::too_many_files_open : std::errc::protocol_error;
  }
  // Its files have descriptors here, so that this closes none of them.
  envelope.header.msg_control = nullptr;
  envelope.header.msg_controllen = 0;
  if (receive_bytes(fd(), envelope.header, 0) != got) {
    return std::errc::connection_reset;
  }
  // Before the size, which may be another one in another version.
  const std::uint32_t protocol = received->message.protocol;
  if (got >= static_cast<ssize_t>(sizeof protocol) && is_other_version(protocol)) {
    return std::errc::protocol_not_supported;
  }
  const bool is_whole = got == static_cast<ssize_t>(sizeof(Message)) && (flags & MSG_TRUNC) == 0;
  return is_whole && protocol == kProtocol ? std::errc{} : std::errc::protocol_error;
}

/// Nothing in it: another process has the lock. The kernel ends it with the process.
Result<base::UniqueFd> Listener::lock(const std::string& path) {
  for (;;) {
    base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!file) {
      return fail_errno(errno, fmt::format("cannot open {}", path));
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return errno == EWOULDBLOCK ? Result<base::UniqueFd>(base::UniqueFd())
                                  : fail_errno(errno, fmt::format("cannot lock {}", path));
    }
    // The one that had it before may have removed the file, and a third one may have made another.
    struct stat ours {};
    struct stat there {};
    if (::fstat(file.get(), &ours) == 0 && ::stat(path.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
        ours.st_dev == there.st_dev) {
      return file;
    }
  }
}

Result<Listener> Listener::open(const MeetingPlace& place) {
  if (base::is_user_unknown()) {
    return fail(std::errc::permission_denied,
                fmt::format("exchange {}: this process runs as user {}, which stands for all users that are unknown in "
                            "its user namespace: members cannot be told from their processes; run it as another user",
                            place.exchange, ::geteuid()));
  }
  if (!place.folder.empty()) {
    if (auto ready = base::check_own_folder(place.folder, "exchanges"); !ready) {
      return ready.error();
    }
  }
  for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
    Files files;
    files.socket_path = path_of(place, seat);
    if (!files.socket_path.empty()) {
      auto locked = lock(files.socket_path + ".lock");
      if (!locked) {
        return locked.error();
      }
      if (!*locked) {
        continue;
      }
      files.lock = base::PrivateFd(*std::move(locked));
      ::unlink(files.socket_path.c_str());  // of a member that was killed
    }
    base::UniqueFd socket = new_socket();
    const SeatAddress address = address_of(place, seat);
    if (socket && ::bind(socket.get(), address.data(), address.size) == 0 && ::listen(socket.get(), kBacklog) == 0) {
      return Listener(std::move(socket), seat, std::move(files));
    }
    if (!socket || errno != EADDRINUSE) {
      return fail_errno(errno, fmt::format("cannot make the socket of seat {} of exchange {}", seat, place.exchange));
    }
  }
  return fail(static_cast<std::errc>(EUSERS),
              fmt::format("exchange {} has {} members already; leave one, or open another exchange", place.exchange,
                          kMostMembers));
}

std::optional<Channel> Listener::accept() {
  base::UniqueFd socket(::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return socket ? std::optional(Channel(std::move(socket))) : std::nullopt;
}

void Listener::shut() {
  ::shutdown(fd(), SHUT_RDWR);
  if (!files_.socket_path.empty()) {
    ::unlink(files_.socket_path.c_str());
    ::unlink((files_.socket_path + ".lock").c_str());  // last: from now on another member may have the seat
    files_.socket_path.clear();
  }
}

}  // namespace shmem::exchange
