// SPDX-License-Identifier: Apache-2.0
// The socket that clients connect to.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.hpp"
#include "fake_device/result.hpp"

namespace fake_device {

/// Only the user of the process may connect.
inline constexpr unsigned kPrivateMode = 0600;

/// A listening Unix socket: a file of the given mode, or abstract if the path begins with @. The destructor removes the
/// file, unless another has replaced it. Used by one thread. Not a wire::Listener: the emulated device uses uapi and
/// base only.
class Listener {
 public:
  /// Replaces a socket that a dead server left behind. Fails if a live server answers there, or if the file is not a
  /// socket.
  static Result<Listener> open(const std::string& path, unsigned mode);
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] int fd() const { return fd_.get(); }

  struct Accepted {
    base::UniqueFd socket;  // non-blocking; empty if there is none
    int error = 0;          // why not: EAGAIN, EMFILE, ...
    bool refused = false;   // the peer is neither of this user nor root, and the socket is not open to others
    uid_t uid = 0;
  };
  Accepted accept() const;

 private:
  struct FileId {
    dev_t device;
    ino_t inode;
  };
  Listener(base::UniqueFd fd, std::string path, std::optional<FileId> file, bool shared);
  static std::optional<FileId> identify(const std::string& path);

  base::UniqueFd fd_;
  std::string path_;
  std::optional<FileId> file_;  // what bind made; nothing of an abstract socket
  bool shared_;                 // the file's mode decides which other users may connect
};

}  // namespace fake_device
