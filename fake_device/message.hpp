// SPDX-License-Identifier: Apache-2.0
// vfio-user messages on a Unix socket: a byte stream cut into messages, the send queue, and stores sent as messages.
#pragma once

#include <sys/types.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fake_device/closer.hpp"
#include "fake_device/effects.hpp"
#include "uapi/gba_switch_regs.h"
#include "uapi/vfio_user.h"

namespace fake_device {

/// What one side accepts; sent to the client in the VERSION reply.
inline constexpr std::uint32_t kMaxTransfer = 0x10000;
inline constexpr std::uint32_t kMaxMessage = kMaxTransfer + 0x1000;
inline constexpr unsigned kMaxFds = 16;

struct VfioUserMessage {
  vfio_user_header header{};
  std::vector<std::byte> payload;
  std::vector<Given> fds;
  bool fds_lost = false;      // not all its descriptors could be received
  bool too_many_fds = false;  // it brought more than kMaxFds; none is kept

  [[nodiscard]] bool is_command() const { return (header.flags & VFIO_USER_TYPE_MASK) == VFIO_USER_TYPE_COMMAND; }
  [[nodiscard]] bool is_reply() const { return (header.flags & VFIO_USER_TYPE_MASK) == VFIO_USER_TYPE_REPLY; }
  [[nodiscard]] bool wants_reply() const { return (header.flags & VFIO_USER_NO_REPLY) == 0; }
};

/// Puts messages together from however few bytes come. It never asks for bytes past the current message, so file
/// descriptors that come with a read belong to that message. No I/O; used by one thread.
class MessageReader {
 public:
  MessageReader();

  /// Where the next bytes go; never empty. Valid until commit().
  [[nodiscard]] std::span<std::byte> room();
  /// `count` bytes of room() have been filled, and `fds` came with them; `fds_lost`: not all that were sent. False:
  /// they cannot be a message, so the start of the next one is unknown.
  bool commit(std::size_t count, std::vector<Given> fds, bool fds_lost = false);
  /// The message, once it is complete. Take it before asking for room again.
  std::optional<VfioUserMessage> take();
  /// A part of a message has come.
  [[nodiscard]] bool unfinished() const { return have_ > 0; }

 private:
  [[nodiscard]] bool header_complete() const { return have_ >= sizeof(vfio_user_header); }

  VfioUserMessage message_;
  std::size_t have_ = 0;  // bytes of the message, header included
  std::size_t size_ = sizeof(vfio_user_header);
};

/// Bytes sent, or -1 with errno. `fds` go with the first of them.
ssize_t send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

struct Received {
  ssize_t count = -1;      // 0: the client has closed; -1: see error
  int error = 0;           // EAGAIN: nothing there
  std::vector<Given> fds;  // that came with the bytes
  bool fds_lost = false;   // this process may not open so many
};
/// Whether the next bytes bring descriptors, which stay where they are.
bool brings_fds(int socket);
/// The descriptors are the client's, of that account.
Received receive_some(int socket, std::span<std::byte> room, Closer& closer, const std::shared_ptr<FdAccount>& account);

/// Past this many bytes the session stops taking requests until the client has read its replies.
inline constexpr std::size_t kSendQueueLimit = 0x40000;

/// Used by one thread. Does not own the descriptors that it sends: they must live as long as it does.
class SendQueue {
 public:
  /// Appends a message; sets header.msg_size.
  void push(vfio_user_header header, std::span<const std::byte> payload, std::vector<int> fds);
  /// Sends what the socket takes, without waiting. False: the connection is dead.
  bool flush(int socket);
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  [[nodiscard]] bool full() const { return bytes_ >= kSendQueueLimit; }

 private:
  struct Outgoing {
    std::vector<std::byte> bytes;
    std::vector<int> fds;  // go with the first byte
    std::size_t sent = 0;
  };
  std::deque<Outgoing> messages_;
  std::size_t bytes_ = 0;
};

struct PostedStore {
  unsigned group;
  std::uint64_t iova;
};

/// Which vectors are raised: each once, as MSI-X has it.
using VectorSet = std::bitset<GBA_SWITCH_MSIX_VECTORS>;

/// No I/O; used by one thread.
class PostedWrites {
 public:
  /// A store was sent; the result is the id of its message.
  std::uint16_t sent(const PostedStore& store, Time now);
  /// False: nothing is outstanding, raise it now. True: completed() will give it back.
  bool hold(unsigned vector);

  struct Completion {
    std::optional<PostedStore> failed;
    VectorSet interrupts;  // that waited for this store and none other
  };
  /// The client has answered. Nothing: no such store is outstanding.
  std::optional<Completion> completed(std::uint16_t id, bool success);
  [[nodiscard]] std::size_t outstanding() const { return entries_.size(); }
  /// Since when the oldest has been without an answer; kNever.
  [[nodiscard]] Time oldest() const { return entries_.empty() ? kNever : entries_.front().since; }

 private:
  struct Entry {
    std::uint16_t id = 0;
    PostedStore store{};
    Time since{};
    bool done = false;
    VectorSet interrupts;  // raised after this store and before the next
  };
  std::deque<Entry> entries_;
  std::uint16_t next_id_ = 0;
};

}  // namespace fake_device
