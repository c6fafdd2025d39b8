// SPDX-License-Identifier: Apache-2.0
#include "driver/discovery.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "driver/backend_vfio_user.hpp"

namespace gba {

namespace {

constexpr std::string_view kVfioUserPrefix = "vfio-user:";
constexpr const char* kDefaultPath = "/dev/gba0";

std::string chosen_path(const char* path) {
  if (path != nullptr && *path != '\0') return path;
  const char* variable = std::getenv("GBA_DEVICE");
  return variable != nullptr && *variable != '\0' ? variable : kDefaultPath;
}

tl::unexpected<Error> no_such_path(const std::string& path, int error) {
  const std::string tried = "gba: cannot open " + path + ": ";
  if (error == EACCES) {
    return fail(std::errc::permission_denied,
                tried + "permission denied (is udev/70-gba.rules installed, and are you in group gba?)");
  }
  if (error == ENOENT || error == ENOTDIR) {
    return fail(std::errc::no_such_device,
                tried + "no such file (is there a GBA? GBA_DEVICE names another path, e.g. a fake device's socket)");
  }
  return fail_errno(error, "gba: cannot open " + path);
}

/// One key for all names of a socket: two paths that lead to the same file are the same device.
std::string key_of(const std::string& socket) {
  struct stat status {};
  if (socket.starts_with('@') || ::stat(socket.c_str(), &status) != 0) return socket;
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

Location vfio_user(const std::string& socket) {
  return {.shown = std::string(kVfioUserPrefix) + socket, .socket = socket, .key = key_of(socket)};
}

}  // namespace

Result<Location> find_device(const char* path) {
  const std::string chosen = chosen_path(path);
  if (chosen.starts_with('@')) return vfio_user(chosen);
  if (chosen.starts_with(kVfioUserPrefix)) {
    const std::string socket = chosen.substr(kVfioUserPrefix.size());
    if (!socket.empty()) return vfio_user(socket);
    return fail(std::errc::invalid_argument, "gba: cannot open " + chosen + ": the name of the socket is missing");
  }
  struct stat status {};
  if (::stat(chosen.c_str(), &status) != 0) return no_such_path(chosen, errno);
  if (S_ISSOCK(status.st_mode)) return vfio_user(chosen);
  if (S_ISCHR(status.st_mode)) {
    return fail(std::errc::no_such_device,
                "gba: cannot open " + chosen + ": a character device (this library opens vfio-user sockets)");
  }
  return fail(std::errc::invalid_argument, "gba: cannot open " + chosen + ": neither a device nor a socket");
}

Result<std::unique_ptr<Backend>> open_backend(const Location& location) {
  return VfioUserBackend::open(location.socket, location.shown);
}

}  // namespace gba
