// SPDX-License-Identifier: Apache-2.0
#include "fake_device/message.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/fd_message.hpp"

namespace fake_device {

namespace {

constexpr std::size_t kHeader = sizeof(vfio_user_header);
// The payload grows as it comes: a client that announces much and sends little costs little.
constexpr std::size_t kStep = 4096;

}  // namespace

MessageReader::MessageReader() = default;

std::span<std::byte> MessageReader::room() {
  if (!header_complete()) {
    return std::as_writable_bytes(std::span(&message_.header, 1)).subspan(have_);
  }
  const auto done = have_ - kHeader;
  message_.payload.resize(std::min(size_ - kHeader, done + kStep));
  return std::span(message_.payload).subspan(done);
}

bool MessageReader::commit(std::size_t count, std::vector<Given> fds, bool fds_lost) {
  const bool had_header = header_complete();
  have_ += count;
  message_.fds_lost |= fds_lost;
  for (auto& fd : fds) {
    message_.fds.push_back(std::move(fd));
  }
  if (message_.fds.size() > kMaxFds) {
    message_.too_many_fds = true;
  }
  if (message_.too_many_fds) {
    message_.fds.clear();
  }
  if (!had_header && header_complete()) {
    size_ = message_.header.msg_size;
    return size_ >= kHeader && size_ <= kMaxMessage;
  }
  return true;
}

std::optional<VfioUserMessage> MessageReader::take() {
  if (!header_complete() || have_ < size_) {
    return std::nullopt;
  }
  have_ = 0;
  size_ = kHeader;
  return std::exchange(message_, VfioUserMessage{});
}

// With room for as many descriptors as the kernel passes at once: what does not fit the kernel closes on this thread.
using SocketMessage = base::FdMessage<Closer::kMostAtOnce>;

ssize_t send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  return SocketMessage(bytes.data(), bytes.size()).send(socket, fds);
}

// Without a buffer for them the kernel says only that there are some.
bool brings_fds(int socket) {
  char byte = 0;
  base::FdMessage<0> message(&byte, 1);
  return message.receive(socket, MSG_DONTWAIT | MSG_PEEK, false) >= 0 && (message.header.msg_flags & MSG_CTRUNC) != 0;
}

Received receive_some(int socket, std::span<std::byte> room, Closer& closer,
                      const std::shared_ptr<FdAccount>& account) {
  SocketMessage message(room.data(), room.size());
  Received result;
  result.count = message.receive(socket);
  if (result.count < 0) {
    result.error = errno;
    return result;
  }
  base::take_fds(message.header, [&](base::UniqueFd fd) { result.fds.emplace_back(closer, account, std::move(fd)); });
  result.fds_lost = (message.header.msg_flags & MSG_CTRUNC) != 0;
  return result;
}

void SendQueue::push(vfio_user_header header, std::span<const std::byte> payload, std::vector<int> fds) {
  header.msg_size = static_cast<std::uint32_t>(sizeof header + payload.size());
  Outgoing message{.bytes = std::vector<std::byte>(header.msg_size), .fds = std::move(fds)};
  std::memcpy(message.bytes.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), message.bytes.begin() + sizeof header);
  bytes_ += message.bytes.size();
  messages_.push_back(std::move(message));
}

bool SendQueue::flush(int socket) {
  while (!messages_.empty()) {
    Outgoing& front = messages_.front();
    const auto rest = std::span<const std::byte>(front.bytes).subspan(front.sent);
    const auto sent = send_some(socket, rest, front.fds);
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    front.fds.clear();
    front.sent += static_cast<std::size_t>(sent);
    if (front.sent == front.bytes.size()) {
      bytes_ -= front.bytes.size();
      messages_.pop_front();
    }
  }
  return true;
}

std::uint16_t PostedWrites::sent(const PostedStore& store, Time now) {
  entries_.push_back({.id = next_id_, .store = store, .since = now, .done = false, .interrupts = {}});
  return next_id_++;
}

bool PostedWrites::hold(unsigned vector) {
  if (entries_.empty()) {
    return false;
  }
  entries_.back().interrupts.set(vector);
  return true;
}

std::optional<PostedWrites::Completion> PostedWrites::completed(std::uint16_t id, bool success) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.id == id && !entry.done; });
  if (found == entries_.end()) {
    return std::nullopt;
  }
  Completion result;
  found->done = true;
  if (!success) {
    result.failed = found->store;
  }
  while (!entries_.empty() && entries_.front().done) {
    result.interrupts |= entries_.front().interrupts;
    entries_.pop_front();
  }
  return result;
}

}  // namespace fake_device
