// SPDX-License-Identifier: Apache-2.0
// Where processes of an exchange meet: Unix sockets with a name each, outside the file system, where the kernel removes
// them with their process, or in a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/disposal.hpp"
#include "base/fd.hpp"
#include "base/private_fd.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

constexpr std::size_t kMostNameBytes = 48;
/// What may follow the name of an exchange: members see each other on seats only if that is equal.
constexpr std::size_t kMostNodeBytes = 17;
/// The longest name of a socket: a seat, or that of the holder.
constexpr std::size_t kMostEndBytes = 6;

/// Where the sockets of an exchange are.
struct MeetingPlace {
  MeetingPlace(std::string name,
               std::string where = {})  // NOLINT(google-explicit-constructor,hicpp-explicit-conversions)
      : exchange(std::move(name)), folder(std::move(where)) {}

  std::string exchange;  // its name, and what may follow it
  /// "": outside the file system, in the network namespace. Else for processes of all namespaces that have the folder.
  /// There, a name is taken while its process has a lock. The next one takes over the socket of one that was killed.
  std::string folder;
};

/// The name of a network file system, by what statfs says (f_type); null: it is another one.
const char* network_file_system(std::uint64_t type);

/// An Error if members cannot meet there: a folder that is not this user's alone, or is on a network file system.
Result<void> check_place(const MeetingPlace& place);

/// Connects to the process that has the socket `end`, which may be another user's. The socket does not block. Errors:
/// ECONNREFUSED there is no such process; EAGAIN too many connections to it are pending.
Result<base::UniqueFd> connect_in(const MeetingPlace& place, const std::string& end);

/// A socket of an exchange that this process has. Used by one thread at a time. Not a wire::Listener, whose end removes
/// its path: by then another process may have the name, and the end of this waits for unread messages.
class PlaceSocket {
 public:
  /// Nothing: another process has it.
  static Result<std::optional<PlaceSocket>> open(const MeetingPlace& place, const std::string& end);

  /// To wait for; -1 during a pause.
  [[nodiscard]] int fd() const { return pauses_ ? -1 : socket_.get(); }
  [[nodiscard]] bool pauses() const { return pauses_; }
  void end_pause() { pauses_ = false; }
  /// Hands over some connections of processes of this user: take(socket), which does not block. False: it is refused.
  /// Gives the number of those that were, of other users, too. What `take` leaves ends by way of `disposal`. A pause
  /// begins without descriptors, or if too many wait to be closed: connections stay, and poll() would return at once.
  std::uint64_t accept(base::Disposal& disposal, const std::function<bool(base::UniqueFd&)>& take);
  /// No process can connect any more. Nothing is left in the folder.
  void shut();

 private:
  PlaceSocket(base::UniqueFd socket, base::PrivateFd lock, std::string path)
      : lock_(std::move(lock)), path_(std::move(path)), socket_(std::move(socket)) {}

  base::PrivateFd lock_;
  std::string path_;  // "": outside the file system
  base::PrivateFd socket_;
  bool pauses_ = false;
};

}  // namespace shmem::exchange
