// SPDX-License-Identifier: Apache-2.0
// Names of the Unix sockets by which the PEs of a node hand over memory: outside the file system, or in a folder.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "base/folder.hpp"
#include "base/random_name.hpp"
#include "base/user.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The address of the socket "shmem-" and a name that cannot be guessed, in the folder; "": outside the file system.
struct NodeSocket {
  explicit NodeSocket(const base::RandomName& name, const std::string& folder = {}) {
    const std::string text = "shmem-" + std::string(name.data(), name.size());
    socket.sun_family = AF_UNIX;
    if (!folder.empty()) {
      path = folder + "/" + text;
    }
    const std::string& shown = folder.empty() ? text : path;
    const std::size_t begin = folder.empty() ? 1 : 0;  // a leading 0: not in the file system
    const std::size_t length = std::min(shown.size(), sizeof socket.sun_path - begin - 1);
    std::memcpy(socket.sun_path + begin, shown.data(), length);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + begin + length + (folder.empty() ? 0 : 1));
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }

  sockaddr_un socket{};
  socklen_t size = 0;
  std::string path;
};

/// Removes the file of a socket at its end.
class SocketFile {
 public:
  explicit SocketFile(std::string path = {}) : path_(std::move(path)) {}
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  SocketFile(SocketFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~SocketFile() {
    if (!path_.empty()) {
      ::unlink(path_.c_str());
    }
  }

 private:
  std::string path_;
};

/// An Error if this process cannot tell PEs from processes of other users, or the folder is not this user's alone.
inline Result<void> check_place_of_sockets(const std::string& folder) {
  if (base::is_user_unknown()) {
    return fail(std::errc::permission_denied,
                "cannot make a Unix socket for the node's PEs: this user's number stands for all users that are "
                "unknown in the user namespace, so that PEs cannot be told from their processes; use another user");
  }
  return folder.empty() ? Result<void>() : base::prepare_for_sockets(folder, "PEs (SHMEM_JOB_DIR)");
}

}  // namespace shmem
