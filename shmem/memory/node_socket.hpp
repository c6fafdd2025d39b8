// SPDX-License-Identifier: Apache-2.0
// Names of the Unix sockets by which the PEs of a node hand over memory: outside the file system, or in a folder.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "base/disposal.hpp"
#include "base/fd.hpp"
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

/// A socket with such a name. All processes can find it, and connect or send to it: what they have sent is closed where
/// no PE waits for it.
class NodeSocket {
 public:
  /// `name`: where `socket` is bound.
  NodeSocket(base::UniqueFd socket, std::string name)
      : path_(name.starts_with('\0') ? "" : std::move(name)), socket_(std::move(socket)) {}
  NodeSocket(const NodeSocket&) = delete;
  NodeSocket& operator=(const NodeSocket&) = delete;
  NodeSocket(NodeSocket&& other) noexcept
      : strangers_(std::move(other.strangers_)),
        path_(std::exchange(other.path_, {})),
        socket_(std::move(other.socket_)) {}
  NodeSocket& operator=(NodeSocket&& other) noexcept {
    std::swap(strangers_, other.strangers_);
    std::swap(path_, other.path_);
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~NodeSocket() {
    if (!path_.empty()) {
      ::unlink(path_.c_str());
    }
    if (socket_) {
      strangers_->close_socket(std::move(socket_));
    }
  }

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] base::Disposal& strangers() { return *strangers_; }

 private:
  std::unique_ptr<base::Disposal> strangers_ = std::make_unique<base::Disposal>();
  std::string path_;  // "": outside the file system
  base::UniqueFd socket_;
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
