// SPDX-License-Identifier: Apache-2.0
#include "fake_device/message.hpp"

#include <algorithm>
#include <utility>

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

bool MessageReader::commit(std::size_t count, std::vector<UniqueFd> fds) {
  const bool had_header = header_complete();
  have_ += count;
  for (auto& fd : fds) {
    message_.fds.push_back(std::move(fd));
  }
  if (!had_header && header_complete()) {
    size_ = message_.header.msg_size;
    return size_ >= kHeader && size_ <= kMaxMessage;
  }
  return true;
}

std::optional<Message> MessageReader::take() {
  if (!header_complete() || have_ < size_) {
    return std::nullopt;
  }
  have_ = 0;
  size_ = kHeader;
  return std::exchange(message_, Message{});
}

}  // namespace fake_device
