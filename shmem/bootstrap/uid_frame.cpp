// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/uid_frame.hpp"

#include <bit>

namespace shmem {

static_assert(std::endian::native == std::endian::little, "frames are copied as they stand in memory");

FrameBytes encode(FrameType type, std::uint32_t step, std::span<const std::byte> head,
                  std::span<const std::byte> body) {
  const FrameHeader header{kFrameMagic, kFrameVersion, type, static_cast<std::uint32_t>(head.size() + body.size()),
                           step};
  const auto start = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> bytes;
  bytes.reserve(start.size() + head.size() + body.size());
  for (const auto part : {start, head, body}) bytes.insert(bytes.end(), part.begin(), part.end());
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

FrameBytes encode(const Error& error) {
  return encode(FrameType::kFailed, FailedHead{static_cast<std::int32_t>(error.code)}, error.text);
}

void FrameReader::push(std::span<const std::byte> bytes) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<Frame>> FrameReader::next() {
  const auto rest = std::span(bytes_).subspan(begin_);
  if (rest.size() < sizeof(FrameHeader)) return std::nullopt;
  FrameHeader header{};
  std::memcpy(&header, rest.data(), sizeof(header));
  if (header.magic != kFrameMagic) return fail(std::errc::bad_message, "what it says is no message of libshmem's");
  if (header.version != kFrameVersion) {
    return fail(std::errc::protocol_not_supported,
                "it speaks version " + std::to_string(header.version) + " of the protocol, this libshmem version " +
                    std::to_string(kFrameVersion) + "; all PEs of a job need the same libshmem");
  }
  if (header.length > most_) {
    return fail(std::errc::message_size, "its message has " + std::to_string(header.length) + " bytes, more than the " +
                                             std::to_string(most_) + " that are allowed here");
  }
  if (rest.size() - sizeof(header) < header.length) return std::nullopt;
  const auto payload = rest.subspan(sizeof(header), header.length);
  begin_ += sizeof(header) + header.length;
  return Frame{header.type, header.step, {payload.begin(), payload.end()}};
}

}  // namespace shmem
