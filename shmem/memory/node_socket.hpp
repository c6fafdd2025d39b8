// SPDX-License-Identifier: Apache-2.0
// Names of the Unix sockets by which the PEs of a node hand over memory: outside the file system, or in a folder.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "base/folder.hpp"
#include "base/random_name.hpp"
#include "base/unix_address.hpp"
#include "base/user.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// For a UnixAddress: "shmem-" and a name that cannot be guessed, in the folder; "": outside the file system.
inline std::string node_socket(const base::RandomName& name, const std::string& folder = {}) {
  return (folder.empty() ? std::string(1, '\0') : folder + "/") + "shmem-" + std::string(name.data(), name.size());
}

/// Removes the file of a socket at its end, if it has one.
class SocketFile {
 public:
  explicit SocketFile(std::string name) : path_(name.starts_with('\0') ? "" : std::move(name)) {}
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
