// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "fake_device/commands.hpp"
#include "fake_device/message.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using fake_device::MessageReader;
using fake_device::VfioUserMessage;

/// A simple version of the decoder: all bytes are available from the beginning.
std::vector<std::vector<std::byte>> cut_at_once(std::span<const std::byte> stream, bool& broken) {
  std::vector<std::vector<std::byte>> payloads;
  vfio_user_header header{};
  while (stream.size() >= sizeof header) {
    std::memcpy(&header, stream.data(), sizeof header);
    if (header.msg_size < sizeof header || header.msg_size > fake_device::kMaxMessage) {
      broken = true;
      return payloads;
    }
    if (header.msg_size > stream.size()) {
      return payloads;
    }
    const auto payload = stream.subspan(sizeof header, header.msg_size - sizeof header);
    payloads.emplace_back(payload.begin(), payload.end());
    stream = stream.subspan(header.msg_size);
  }
  return payloads;
}

void parse(const VfioUserMessage& message) {
  const auto limits = fake_device::parse_version(message.payload);
  if (limits) {
    check(limits->max_transfer <= fake_device::kMaxTransfer, "the smaller limit of two counts");
    check(fake_device::version_reply(*limits).size() + sizeof(vfio_user_header) <= VFIO_USER_MAX_VERSION_REPLY,
          "the reply to VERSION is short");
  } else {
    check(!limits.error().text.empty(), "a refusal has a reason");
  }
}

}  // namespace

// First byte: the length of the pieces, minus one.
void run_message(std::span<const std::byte> bytes) {
  Input input(bytes);
  const std::size_t piece = input.take<std::uint8_t>() + std::size_t{1};
  auto stream = input.take_bytes(bytes.size());
  bool broken = false;
  const auto expected = cut_at_once(stream, broken);
  std::vector<std::vector<std::byte>> payloads;
  MessageReader reader;
  while (!stream.empty()) {
    const auto room = reader.room();
    check(!room.empty(), "there is always room");
    const auto count = std::min({piece, room.size(), stream.size()});
    std::copy_n(stream.begin(), count, room.begin());
    if (!reader.commit(count, {})) {
      check(broken, "what is a message is taken");
      break;
    }
    stream = stream.subspan(count);
    if (auto message = reader.take()) {
      parse(*message);
      payloads.push_back(std::move(message->payload));
    }
  }
  check(payloads == expected, "pieces make the messages that the whole makes");
}

}  // namespace fuzz
