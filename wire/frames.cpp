// SPDX-License-Identifier: Apache-2.0
#include "wire/frames.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace wire {

using base::fail;

static_assert(std::endian::native == std::endian::little, "frames are copied as they stand in memory");

FrameBytes encode(FrameType type, std::uint32_t step, std::span<const std::byte> head,
                  std::span<const std::byte> body) {
  const FrameHeader header{kFrameMagic, kFrameVersion, type, static_cast<std::uint32_t>(head.size() + body.size()),
                           step};
  const auto start = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> bytes;
  bytes.reserve(start.size() + head.size() + body.size());
  for (const auto part : {start, head, body}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

FrameBytes encode(const Seal& seal) {
  const auto bytes = std::as_bytes(std::span(seal));
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

void FrameReader::push(std::span<const std::byte> bytes) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<Frame>> FrameReader::next() {
  const auto rest = std::span(bytes_).subspan(begin_);
  if (rest.size() < sizeof(FrameHeader)) {
    return std::nullopt;
  }
  FrameHeader header{};
  std::memcpy(&header, rest.data(), sizeof(header));
  if (header.magic != kFrameMagic) {
    return fail(std::errc::bad_message, "what it sent is not a message of libshmem");
  }
  if (header.version != kFrameVersion) {
    return fail(
        std::errc::protocol_not_supported,
        fmt::format(
            "it speaks version {} of the protocol, this libshmem version {}; all PEs of a job need the same libshmem",
            header.version, kFrameVersion));
  }
  if (header.length > most_) {
    return fail(std::errc::message_size,
                fmt::format("its message has {} bytes, more than the {} that are allowed here", header.length, most_));
  }
  const std::size_t seal = seals_ ? sizeof(Seal) : 0;
  if (rest.size() - sizeof(header) < header.length + seal) {
    return std::nullopt;
  }
  const auto whole = rest.first(sizeof(header) + header.length);
  if (auto right = check_seal(whole, rest.subspan(whole.size(), seal)); !right) {
    return right.error();
  }
  const auto payload = whole.subspan(sizeof(header));
  begin_ += whole.size() + seal;
  return Frame{header.type, header.step, {payload.begin(), payload.end()}};
}

Result<void> FrameReader::check_seal(std::span<const std::byte> frame, std::span<const std::byte> seal) {
  if (!seals_) {
    return {};
  }
  Seal came{};
  std::memcpy(came.data(), seal.data(), came.size());
  if (!same(came, seals_->next(frame))) {
    return fail(std::errc::permission_denied, "its message was made or changed by a program without the secret");
  }
  return {};
}

}  // namespace wire
