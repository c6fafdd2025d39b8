// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/address_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "shmem/bootstrap/allgather.hpp"

namespace shmem {

namespace {

class Packer {
 public:
  void number(std::uint64_t value) { append(std::as_bytes(std::span(&value, 1))); }
  void bytes(std::span<const std::byte> value) {
    number(value.size());
    append(value);
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(packed_); }

 private:
  void append(std::span<const std::byte> value) { packed_.insert(packed_.end(), value.begin(), value.end()); }
  std::vector<std::byte> packed_;
};

/// Reads nothing beyond the end, and remembers the attempt.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> packed) : left_(packed) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto part = take(sizeof value);
    if (!part.empty()) {
      std::memcpy(&value, part.data(), sizeof value);
    }
    return value;
  }
  std::vector<std::byte> bytes() {
    const auto part = take(number());
    return {part.begin(), part.end()};
  }
  [[nodiscard]] bool whole() const { return !short_ && left_.empty(); }

 private:
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > left_.size()) {
      short_ = true;
      return {};
    }
    const auto part = left_.first(size);
    left_ = left_.subspan(size);
    return part;
  }
  std::span<const std::byte> left_;
  bool short_ = false;
};

const char* segment_name(std::size_t segment) {
  switch (static_cast<Segment>(segment)) {
    case Segment::kHeap:
      return "symmetric heap";
    case Segment::kGlobals:
      return "global variables";
    case Segment::kBoard:
      return "synchronization board";
    case Segment::kFirstRegistered:
      break;
  }
  return "";
}

const char* segment_advice(std::size_t segment) {
  switch (static_cast<Segment>(segment)) {
    case Segment::kHeap:
      return "set SHMEM_SYMMETRIC_SIZE to the same value on all nodes, a multiple of the pages of each, and use huge "
             "pages on all of them or on none";
    case Segment::kGlobals:
      return "start the same program on all nodes";
    case Segment::kBoard:
      return "use the same libshmem and the same SHMEM_* settings on all nodes";
    case Segment::kFirstRegistered:
      break;
  }
  return "";
}

}  // namespace

std::vector<std::byte> pack_address(const PeAddress& address, std::uint64_t start) {
  Packer packer;
  packer.number(start);
  packer.bytes(address.address);
  for (const SegmentAddress& segment : address.segments) {
    packer.number(segment.address);
    packer.number(segment.bytes);
    packer.bytes(segment.key);
  }
  return packer.take();
}

Result<PeAddress> unpack_address(std::span<const std::byte> bytes, std::uint64_t start) {
  Unpacker unpacker(bytes);
  const bool of_this_start = unpacker.number() == start;
  PeAddress address;
  address.address = unpacker.bytes();
  for (SegmentAddress& segment : address.segments) {
    segment.address = unpacker.number();
    segment.bytes = unpacker.number();
    segment.key = unpacker.bytes();
  }
  if (!unpacker.whole()) {
    return fail(std::errc::bad_message, "is cut off or too long");
  }
  if (!of_this_start) {
    return fail(std::errc::bad_message, "is of another start of the job");
  }
  return address;
}

Result<void> check_heads(const std::vector<AddressHeader>& heads, const std::vector<std::string>& names) {
  for (std::size_t pe = 0; pe < heads.size(); ++pe) {
    const AddressHeader& head = heads[pe];
    if (head.magic != kAddressMagic || head.version != kAddressVersion) {
      return fail(std::errc::protocol_error,
                  fmt::format("shmem: {} does not speak version {} of libshmem's network protocol: install the same "
                              "libshmem on all nodes, of the same architecture",
                              names[pe], kAddressVersion));
    }
    if (head.major != heads[0].major || head.minor != heads[0].minor) {
      return fail(std::errc::protocol_error,
                  fmt::format("shmem: {} has UCX {}.{}, {} has UCX {}.{}: install the same version on all nodes",
                              names[0], heads[0].major, heads[0].minor, names[pe], head.major, head.minor));
    }
    // Each PE makes room for as many bytes from all of them.
    if (head.rest > kLongestAddress) {
      return fail(std::errc::bad_message,
                  fmt::format("shmem: the network address of {} has {} bytes, more than the {} that are allowed: start "
                              "the job again",
                              names[pe], head.rest, kLongestAddress));
    }
  }
  return {};
}

Result<void> check_segments(const std::vector<PeAddress>& addresses, const std::vector<std::string>& names) {
  for (std::size_t pe = 1; pe < addresses.size(); ++pe) {
    for (std::size_t segment = 0; segment < kSegments; ++segment) {
      const std::uint64_t first = addresses[0].segments[segment].bytes;
      const std::uint64_t here = addresses[pe].segments[segment].bytes;
      if (first == here) {
        continue;
      }
      return fail(std::errc::invalid_argument,
                  fmt::format("shmem: the {} of {} takes {} bytes, that of {} {}: {}", segment_name(segment), names[0],
                              first, names[pe], here, segment_advice(segment)));
    }
  }
  return {};
}

Result<JobAddresses> exchange_addresses(Bootstrap& world, const PeAddress& mine,
                                        const std::vector<std::string>& names) {
  std::random_device chance;  // the processor's or the kernel's generator: the number cannot be guessed
  const AddressHeader head{kAddressMagic,
                           kAddressVersion,
                           mine.major,
                           mine.minor,
                           static_cast<std::uint32_t>(pack_address(mine, 0).size()),
                           (std::uint64_t{chance()} << 32) | chance()};
  const auto heads = allgather(world, head);
  if (!heads) {
    return heads.error();
  }
  if (auto fit = check_heads(*heads, names); !fit) {
    return fit.error();
  }

  // The bootstrap gathers the same number of bytes from each PE.
  std::size_t longest = 0;
  for (const AddressHeader& other : *heads) {
    longest = std::max<std::size_t>(longest, other.rest);
  }
  std::vector<std::byte> padded = pack_address(mine, (*heads)[0].start);
  padded.resize(longest);
  const auto rests = world.allgather(padded);
  if (!rests) {
    return rests.error();
  }

  JobAddresses addresses{.job = (*heads)[0].start, .pes = {}};
  addresses.pes.reserve(heads->size());
  for (std::size_t pe = 0; pe < heads->size(); ++pe) {
    auto address = unpack_address(std::span(*rests).subspan(pe * longest, (*heads)[pe].rest), (*heads)[0].start);
    if (!address) {
      return fail(address.error().code, fmt::format("shmem: the network address of {} {}: start the job again",
                                                    names[pe], address.error().text));
    }
    addresses.pes.push_back(std::move(*address));
  }
  if (auto fit = check_segments(addresses.pes, names); !fit) {
    return fit.error();
  }
  return addresses;
}

}  // namespace shmem
