// SPDX-License-Identifier: Apache-2.0
#include "fake_device/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/unix_address.hpp"
#include "base/user.hpp"

namespace fake_device {
namespace {

constexpr int kBacklog = 4096;

base::UniqueFd make_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Serialises servers that start at once in one folder: each checks for a live server and binds under the lock. A
// process that holds the lock for long, perhaps on purpose, does not stop this one for ever.
base::UniqueFd lock_folder(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  base::UniqueFd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr int kTries = 100;
  for (int tries = 0; fd && tries < kTries && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fd;
}

Error in_use(const std::string& path) {
  return failure(
      fmt::format("cannot listen on {}: another server answers there (stop it, or choose another --socket)", path));
}

// Clears the way for bind: nothing there, or what a dead server has left.
Result<void> remove_stale(const std::string& path, const base::UnixAddress& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return {};
  }
  if (!S_ISSOCK(info.st_mode)) {
    return failure(fmt::format("cannot listen on {}: that is a file, not a socket (choose another --socket)", path));
  }
  const base::UniqueFd probe = make_socket();
  if (::connect(probe.get(), address.get(), address.size) == 0 || errno != ECONNREFUSED) {
    return in_use(path);
  }
  if (::unlink(path.c_str()) != 0) {
    return failure(fmt::format("cannot remove the stale socket {}", path), errno);
  }
  return {};
}

// The file must never be open to more than `mode` says, not even for the moment between bind and chmod.
int bind_with_mode(int fd, const base::UnixAddress& address, unsigned mode) {
  const mode_t before = ::umask(~mode & 0777U);
  const int result = ::bind(fd, address.get(), address.size);
  ::umask(before);
  return result;
}

}  // namespace

Result<Listener> Listener::open(const std::string& path, unsigned mode) {
  constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() < 2 || path.size() > kMost) {
    return failure(fmt::format("cannot listen on \"{}\": a socket name has 2 to {} bytes", path, kMost));
  }
  const auto address = base::UnixAddress::of_text(path);
  const bool abstract = path.starts_with('@');
  const base::UniqueFd lock = abstract ? base::UniqueFd() : lock_folder(path);
  if (!abstract) {
    if (const auto cleared = remove_stale(path, address); !cleared) {
      return cleared.error();
    }
  }
  base::UniqueFd fd = make_socket();
  if (!fd || bind_with_mode(fd.get(), address, mode) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return errno == EADDRINUSE ? in_use(path) : failure(fmt::format("cannot listen on {}", path), errno);
  }
  const bool shared = !abstract && (mode & ~kPrivateMode) != 0;
  return Listener(std::move(fd), path, abstract ? std::nullopt : identify(path), shared);
}

Listener::Listener(base::UniqueFd fd, std::string path, std::optional<FileId> file, bool shared)
    : fd_(std::move(fd)), path_(std::move(path)), file_(file), shared_(shared) {}

Listener::~Listener() {
  if (!fd_ || !file_) {
    return;
  }
  const auto now = identify(path_);
  if (now && now->device == file_->device && now->inode == file_->inode) {
    ::unlink(path_.c_str());
  }
}

std::optional<Listener::FileId> Listener::identify(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return FileId{.device = info.st_dev, .inode = info.st_ino};
}

Listener::Accepted Listener::accept() const {
  Accepted result;
  result.socket = base::UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!result.socket) {
    result.error = errno;
    return result;
  }
  const auto peer = base::peer_of(result.socket.get());
  result.uid = peer ? peer->uid : 0;
  result.refused = !peer || (!shared_ && peer->uid != 0 && !base::is_this_user(peer->uid));
  return result;
}

}  // namespace fake_device
