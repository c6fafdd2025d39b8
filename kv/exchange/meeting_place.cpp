// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/meeting_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/folder.hpp"
#include "base/unix_address.hpp"
#include "base/user.hpp"
#include "wire/listener.hpp"

namespace shmem::exchange {
namespace {

constexpr int kBacklog = 128;

struct SocketAddress : base::UnixAddress {
  base::UniqueFd folder{};  // by which the path goes, if it would be too long
};

std::string file_of(const MeetingPlace& place, const std::string& end) {
  return fmt::format("{}.{}", place.exchange, end);
}
std::string path_of(const MeetingPlace& place, const std::string& end) {
  return place.folder.empty() ? std::string() : place.folder + "/" + file_of(place, end);
}

SocketAddress address_of(const MeetingPlace& place, const std::string& end) {
  if (place.folder.empty()) {
    // The user is in the name, so that two users may have exchanges of one name.
    static_assert(sizeof("@shmem-exchange/4294967295//") + kMostNameBytes + kMostNodeBytes + kMostEndBytes <
                  sizeof(sockaddr_un::sun_path));
    return {base::UnixAddress::of_text(fmt::format("@shmem-exchange/{}/{}/{}", ::geteuid(), place.exchange, end))};
  }
  std::string path = path_of(place, end);
  base::UniqueFd folder;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    static_assert(sizeof("/proc/self/fd/2147483647/.") + kMostNameBytes + kMostNodeBytes + kMostEndBytes <
                  sizeof(sockaddr_un::sun_path));
    folder.reset(::open(place.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    path = fmt::format("/proc/self/fd/{}/{}", folder.get(), file_of(place, end));
  }
  return {base::UnixAddress(path), std::move(folder)};
}

base::UniqueFd new_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Nothing in it: another process has the lock. The kernel ends it with the process.
Result<base::UniqueFd> lock(const std::string& path) {
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

}  // namespace

const char* network_file_system(std::uint64_t type) {
  // From linux/magic.h and the sources of file systems that it does not name.
  constexpr std::pair<std::uint64_t, const char*> kTypes[] = {
      {0x6969, "NFS"},         {0x517B, "SMB"},       {0xFE53'4D42, "SMB"},   {0xFF53'4D42, "CIFS"},
      {0x0BD0'0BD0, "Lustre"}, {0x00C3'6400, "Ceph"}, {0x5346'414F, "AFS"},   {0x7375'7245, "Coda"},
      {0x4750'4653, "GPFS"},   {0x0102'1997, "9p"},   {0x7461'636f, "OCFS2"}, {0x0116'1970, "GFS2"}};
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [type](const auto& one) { return one.first == type; });
  return found != std::end(kTypes) ? found->second : nullptr;
}

namespace {

/// Sockets and locks of a network file system do not reach processes of other machines, and may not work at all.
Result<void> check_local(const std::string& folder) {
  struct statfs system {};
  const char* const name =
      ::statfs(folder.c_str(), &system) == 0 ? network_file_system(static_cast<std::uint32_t>(system.f_type)) : nullptr;
  return name == nullptr
             ? Result<void>()
             : fail(std::errc::operation_not_supported,
                    fmt::format("the folder {} of exchanges is on a network file system ({}); use one of this machine, "
                                "such as in /run",
                                folder, name));
}

}  // namespace

Result<void> check_place(const MeetingPlace& place) {
  if (base::is_user_unknown()) {
    return fail(std::errc::permission_denied,
                fmt::format("exchange {}: this process runs as user {}, which stands for all users that are unknown in "
                            "its user namespace: members cannot be told from their processes; run it as another user",
                            place.exchange, ::geteuid()));
  }
  if (place.folder.empty()) {
    return {};
  }
  auto own = base::check_own_folder(place.folder, "exchanges");
  return own ? check_local(place.folder) : own;
}

Result<base::UniqueFd> connect_in(const MeetingPlace& place, const std::string& end) {
  base::UniqueFd socket = new_socket();
  const SocketAddress address = address_of(place, end);
  if (!socket || ::connect(socket.get(), address.get(), address.size) != 0) {
    const int error = errno == ENOENT ? ECONNREFUSED : errno;  // in a folder: no process has had this name yet
    return fail_errno(error, fmt::format("cannot connect to {} of exchange {}", end, place.exchange));
  }
  return socket;
}

Result<std::optional<PlaceSocket>> PlaceSocket::open(const MeetingPlace& place, const std::string& end) {
  using Opened = std::optional<PlaceSocket>;
  std::string path = path_of(place, end);
  base::PrivateFd has_lock;
  if (!path.empty()) {
    auto locked = lock(path + ".lock");
    if (!locked) {
      return locked.error();
    }
    if (!*locked) {
      return Opened();
    }
    has_lock = base::PrivateFd(*std::move(locked));
    ::unlink(path.c_str());  // of a process that was killed
  }
  base::UniqueFd socket = new_socket();
  const SocketAddress address = address_of(place, end);
  if (socket && ::bind(socket.get(), address.get(), address.size) == 0 && ::listen(socket.get(), kBacklog) == 0) {
    return Opened(PlaceSocket(std::move(socket), std::move(has_lock), std::move(path)));
  }
  return socket && errno == EADDRINUSE
             ? Result<Opened>(Opened())
             : fail_errno(errno, fmt::format("cannot make the socket {} of exchange {}", end, place.exchange));
}

std::uint64_t PlaceSocket::accept(base::Disposal& disposal, const std::function<bool(base::UniqueFd&)>& take) {
  std::uint64_t refused = 0;
  int came = 0;
  // Not more: those of other users could come without an end.
  for (; came < wire::Listener::kMostAtOnce && !disposal.is_behind(); ++came) {
    base::UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      break;
    }
    if (!base::is_peer_this_user(socket.get()) || !take(socket)) {
      ++refused;
      ::shutdown(socket.get(), SHUT_RDWR);
      disposal.take(base::PrivateFd(std::move(socket)));
    }
  }
  pauses_ = came == 0 || disposal.is_behind();
  return refused;
}

void PlaceSocket::shut() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  if (!path_.empty()) {
    ::unlink(path_.c_str());
    ::unlink((path_ + ".lock").c_str());  // last: from now on another process may have the name
    path_.clear();
  }
}

}  // namespace shmem::exchange
