// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/greeting.hpp"

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

/// Gives nothing beyond the end, and remembers that it was asked to.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> packed) : left_(packed) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto part = take(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), sizeof value);
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

std::string version_text(const GreetingHead& head) {
  return std::to_string(head.major) + "." + std::to_string(head.minor);
}

const char* segment_name(std::size_t segment) {
  switch (static_cast<Segment>(segment)) {
    case Segment::kHeap:
      return "symmetric heap";
    case Segment::kGlobals:
      return "global variables";
    case Segment::kBoard:
      return "synchronization board";
  }
  return "";
}

const char* segment_advice(std::size_t segment) {
  switch (static_cast<Segment>(segment)) {
    case Segment::kHeap:
      return "set SHMEM_SYMMETRIC_SIZE to the same value on all nodes, a multiple of the pages of each, and use huge "
             "pages on "
             "all of them or on none";
    case Segment::kGlobals:
      return "start the same program on all nodes";
    case Segment::kBoard:
      return "use the same libshmem and the same SHMEM_* settings on all nodes";
  }
  return "";
}

}  // namespace

std::vector<std::byte> pack_greeting(const Greeting& greeting, std::uint64_t start) {
  Packer packer;
  packer.number(start);
  packer.bytes(greeting.address);
  for (const SegmentGreeting& segment : greeting.segments) {
    packer.number(segment.address);
    packer.number(segment.bytes);
    packer.bytes(segment.key);
  }
  return packer.take();
}

Result<Greeting> unpack_greeting(std::span<const std::byte> bytes, std::uint64_t start) {
  Unpacker unpacker(bytes);
  const bool of_this_start = unpacker.number() == start;
  Greeting greeting;
  greeting.address = unpacker.bytes();
  for (SegmentGreeting& segment : greeting.segments) {
    segment.address = unpacker.number();
    segment.bytes = unpacker.number();
    segment.key = unpacker.bytes();
  }
  if (!unpacker.whole()) return fail(std::errc::bad_message, "is cut off or too long");
  if (!of_this_start) return fail(std::errc::bad_message, "is of another start of the job");
  return greeting;
}

Result<void> check_heads(const std::vector<GreetingHead>& heads, const std::vector<std::string>& names) {
  for (std::size_t pe = 0; pe < heads.size(); ++pe) {
    const GreetingHead& head = heads[pe];
    if (head.magic != kGreetingMagic || head.version != kGreetingVersion) {
      return fail(std::errc::protocol_error,
                  "shmem: " + names[pe] + " does not speak version " + std::to_string(kGreetingVersion) +
                      " of libshmem's network protocol: install the same libshmem on all nodes, of the same "
                      "architecture");
    }
    if (head.major != heads[0].major || head.minor != heads[0].minor) {
      return fail(std::errc::protocol_error, "shmem: " + names[0] + " has UCX " + version_text(heads[0]) + ", " +
                                                 names[pe] + " has UCX " + version_text(head) +
                                                 ": install the same version on all nodes");
    }
  }
  return {};
}

Result<void> check_segments(const std::vector<Greeting>& greetings, const std::vector<std::string>& names) {
  for (std::size_t pe = 1; pe < greetings.size(); ++pe) {
    for (std::size_t segment = 0; segment < kSegments; ++segment) {
      const std::uint64_t first = greetings[0].segments[segment].bytes;
      const std::uint64_t here = greetings[pe].segments[segment].bytes;
      if (first == here) continue;
      return fail(std::errc::invalid_argument, std::string("shmem: the ") + segment_name(segment) + " of " + names[0] +
                                                   " takes " + std::to_string(first) + " bytes, that of " + names[pe] +
                                                   " " + std::to_string(here) + ": " + segment_advice(segment));
    }
  }
  return {};
}

Result<std::vector<Greeting>> exchange_greetings(Bootstrap& world, const Greeting& mine,
                                                 const std::vector<std::string>& names) {
  std::random_device chance;
  const GreetingHead head{kGreetingMagic,
                          kGreetingVersion,
                          mine.major,
                          mine.minor,
                          static_cast<std::uint32_t>(pack_greeting(mine, 0).size()),
                          (std::uint64_t{chance()} << 32) | chance()};
  const auto heads = allgather(world, head);
  if (!heads) return tl::make_unexpected(heads.error());
  if (auto fit = check_heads(*heads, names); !fit) return tl::make_unexpected(fit.error());

  // The bootstrap takes as many bytes of everybody.
  std::size_t longest = 0;
  for (const GreetingHead& other : *heads) longest = std::max<std::size_t>(longest, other.rest);
  std::vector<std::byte> padded = pack_greeting(mine, (*heads)[0].start);
  padded.resize(longest);
  const auto rests = world.allgather(padded);
  if (!rests) return tl::make_unexpected(rests.error());

  std::vector<Greeting> greetings;
  greetings.reserve(heads->size());
  for (std::size_t pe = 0; pe < heads->size(); ++pe) {
    auto greeting = unpack_greeting(std::span(*rests).subspan(pe * longest, (*heads)[pe].rest), (*heads)[0].start);
    if (!greeting) {
      return fail(greeting.error().code, "shmem: what " + names[pe] + " told of its network " + greeting.error().text +
                                             ": start the job again");
    }
    greetings.push_back(std::move(*greeting));
  }
  if (auto fit = check_segments(greetings, names); !fit) return tl::make_unexpected(fit.error());
  return greetings;
}

}  // namespace shmem
