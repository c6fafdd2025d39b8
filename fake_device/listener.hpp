// SPDX-License-Identifier: Apache-2.0
// The socket that clients connect to.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "fake_device/result.hpp"
#include "fake_device/unique_fd.hpp"

namespace fake_device {

/// The socket is its user's own.
inline constexpr unsigned kPrivateMode = 0600;

/// A listening Unix socket: a file of the given mode, or abstract where the path begins with @. The file goes with the
/// object, unless another has taken its place. Used by one thread.
class Listener {
 public:
  /// Takes the place of a socket that a dead server left behind; refuses where a live one answers, or where something
  /// that is no socket stands.
  static Result<Listener> open(const std::string& path, unsigned mode);
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] int fd() const { return fd_.get(); }

  struct Accepted {
    UniqueFd socket;       // non-blocking; empty if there is none
    int error = 0;         // why not: EAGAIN, EMFILE, ...
    bool refused = false;  // the peer is neither of this user nor root, and the socket is not open to others
    uid_t uid = 0;
  };
  Accepted accept() const;

 private:
  struct FileId {
    dev_t device;
    ino_t inode;
  };
  Listener(UniqueFd fd, std::string path, std::optional<FileId> file, bool shared);
  static std::optional<FileId> identify(const std::string& path);

  UniqueFd fd_;
  std::string path_;
  std::optional<FileId> file_;  // what bind made; nothing of an abstract socket
  bool shared_;                 // the file's mode says who may connect, besides this user
};

}  // namespace fake_device
