// SPDX-License-Identifier: Apache-2.0
// Connections between members: how they find each other, and hand over what they share. A member is at the Unix socket
// of its seat: outside the file system, where the kernel removes it with the process, or in a folder.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "base/private_fd.hpp"
#include "kv/exchange/meeting_place.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

constexpr std::uint32_t kMostMembers = 64;

/// The first bytes of each message. It changes with the protocol, or with what is in shared memory.
constexpr std::uint32_t kProtocol = 0x6b'76'78'03;
/// In the lowest byte alone, so that members with different versions can tell each other from garbage.
constexpr bool is_other_version(std::uint32_t protocol) {
  return protocol != kProtocol && protocol >> 8 == kProtocol >> 8;
}

enum class Kind : std::uint32_t {
  kHello = 1,    // a reader's first message: `number` is its seat
  kWelcome = 2,  // the answer, after its regions: slots, quota, flags; descriptors: directory, leases
  kRegion = 3,   // memory was registered: `number`, range; descriptor: its file
  kGone = 4      // memory was unregistered: `number`
};

/// Flag of kWelcome: the member wants to know which of its blocks are used (leases.hpp).
constexpr std::uint32_t kWantsUse = 1;

/// Whole messages, at most this large.
struct ChannelMessage {
  std::uint32_t protocol = kProtocol;
  Kind kind{};
  std::uint64_t member = 0;  // id of the sender
  std::uint32_t number = 0;
  std::uint32_t quota = 0;
  std::uint32_t lease_ms = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(ChannelMessage) == 48);

constexpr std::size_t kMostMessageFds = 2;
/// As if this process had no descriptors.
constexpr std::size_t kLeaveMessagesWithFds = SIZE_MAX;

/// What came: a message with its descriptors.
struct Received {
  ChannelMessage message;
  std::array<base::UniqueFd, kMostMessageFds> files{base::UniqueFd(), base::UniqueFd()};
  [[nodiscard]] bool has_files() const {
    return std::any_of(files.begin(), files.end(), [](const base::UniqueFd& file) { return file.get() >= 0; });
  }
};

/// One end. Nothing waits: these calls return at once. Used by one thread at a time.
class Channel {
 public:
  Channel() = default;
  explicit Channel(base::UniqueFd socket) : socket_(std::move(socket)) {}

  /// Connects to the process on this seat, which may be another user's. Errors: ECONNREFUSED none is there; EAGAIN too
  /// many connections to it are pending.
  static Result<Channel> connect(const MeetingPlace& place, std::uint32_t seat);

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// 0: unknown.
  [[nodiscard]] pid_t peer() const;
  [[nodiscard]] bool is_our_user() const;

  /// An error also if the other end has not taken earlier messages: a member that does not run must not hold up others.
  std::errc send(const ChannelMessage& message, std::span<const int> files = {});
  /// Nothing, and no error: no message is there. Errors: ECONNRESET the other end has gone; EPROTONOSUPPORT it is a
  /// member with another version of libshmem; EPROTO it does not follow the protocol; EMFILE this process has too few
  /// descriptors for those of the message, which stays. `most_files`: more descriptors are an error, EPROTO; or
  /// kLeaveMessagesWithFds.
  ///
  /// Closing what comes from another process may take as long as that process likes: a socket waits for its linger
  /// time. So nothing is closed here. The caller ends `received`, which may have descriptors also after an error, and
  /// this connection, in which they may still be, where no call waits for it: Disposal.
  std::errc receive(std::optional<Received>& received, std::size_t most_files = kMostMessageFds);
  /// The other end sees the end of the connection, as after the end of this object, which may come later.
  void shut();

 private:
  base::PrivateFd socket_;
};

struct SeatSocket {
  /// Takes the first free seat. Errors: EUSERS; EACCES this process cannot be told from those of other users, or the
  /// folder is not this user's alone.
  static Result<SeatSocket> open(const MeetingPlace& place);

  PlaceSocket socket;
  std::uint32_t number;
};

}  // namespace shmem::exchange
