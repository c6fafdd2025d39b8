// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/memfd.hpp"
#include "kv/exchange/directory_writer.hpp"
#include "kv/exchange/link_frames.hpp"
#include "kv/exchange/remote_peer.hpp"
#include "kv/exchange/remote_readers.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using namespace shmem::exchange;  // NOLINT(google-build-using-namespace): what the target is about

using wire::kLongestBody;
using wire::PortMessage;

constexpr std::uint64_t kSession = 0x11;
constexpr std::uint64_t kAnswers = 0x22;
constexpr std::uint64_t kRoute = 7;
constexpr std::size_t kMemoryBytes = std::size_t{128} << 10;
constexpr std::size_t kBlockBytes = 70'000;  // in two messages
constexpr std::byte kRemoteGuard{0x5a};

std::byte content(std::size_t i) {
  return static_cast<std::byte>(i * 7 + i / 251);
}

Key key_named(const std::string& text) {
  return *Key::make(text.data(), text.size());
}

/// u8 kind, u8: 0: another session, u8 number, u8 count, u32 count if that was 255, u64 first, u64 second, u16 length
/// of the body, the body.
struct AnyMessage {
  RemoteHead head;
  std::span<const std::byte> body;

  AnyMessage(Input& input, std::uint64_t session) {
    head.kind = static_cast<RemoteKind>(input.take<std::uint8_t>());
    head.session = input.take<std::uint8_t>() != 0 ? session : 0;
    head.number = input.take<std::uint8_t>();
    head.count = input.take<std::uint8_t>();
    if (head.count == 255) {
      head.count = input.take<std::uint32_t>();
    }
    head.first = input.take<std::uint64_t>();
    head.second = input.take<std::uint64_t>();
    body = input.take_bytes(input.take<std::uint16_t>());
  }
};

/// An owner of two blocks, of the same bytes.
class FuzzOwner {
 public:
  FuzzOwner()
      : writer_(*DirectoryWriter::create(8)),
        readers_(DirectoryReader(writer_.memory(), writer_.slots()), {.quota = 2, .lease_ms = 1000},
                 [](std::uint64_t route, PortMessage message) { look_at(route, std::move(message)); }) {
    auto file = *base::create_memfd("blocks", kMemoryBytes);
    const auto memory = *base::Mapping::share(file.get(), kMemoryBytes);
    for (std::size_t i = 0; i < kBlockBytes; ++i) {
      memory.data()[i] = content(i);
    }
    check(bool{readers_.add_region(1, std::move(file), {0, kMemoryBytes})}, "memory can be registered");
    check(bool{readers_.add(kSession, kRoute, kAnswers)}, "a reader can be added");
    publish();
  }
  FuzzOwner(const FuzzOwner&) = delete;
  FuzzOwner& operator=(const FuzzOwner&) = delete;
  ~FuzzOwner() = default;

  /// Steps: 0, 1, 2: a message; 3: parts of blocks are sent; 4: a block is withdrawn and published again.
  void step(Input& input) {
    switch (input.take<std::uint8_t>() % 5) {
      case 3:
        readers_.turn();
        break;
      case 4:
        if (const auto withdrawn = writer_.withdraw(key_named("a"))) {
          writer_.remove(*withdrawn);
        }
        publish();
        break;
      default: {
        const AnyMessage message(input, kSession);
        const auto outcome = readers_.receive(message.head, message.body);
        check((outcome == RemoteReaders::Outcome::kForeign) == (message.head.session != kSession),
              "a message of the reader is known");
      }
    }
  }

  void finish() {
    for (int i = 0; i < 4096 && readers_.turn(); ++i) {
    }
    check(!readers_.turn(), "pulls end");
    readers_.remove(kSession);
    check(!readers_.is_leased(0, lease_clock()) && !readers_.is_leased(1, lease_clock()), "leases end with the reader");
  }

 private:
  void publish() {
    writer_.publish(key_named("a"), {1, 0, kBlockBytes, 5});
    writer_.publish(key_named("b"), {1, 0, 100, 6});
  }

  static void look_at(std::uint64_t route, PortMessage message) {
    const auto head = read_remote_head(message.head);
    check(route == kRoute && head && head->session == kAnswers, "an answer goes to its reader");
    check(message.bytes <= kLongestBody, "an answer is not too long");
    if (message.under_way != nullptr) {
      message.under_way->fetch_sub(1);
    }
    BodyReader body({message.body.get(), message.bytes});
    for (std::uint32_t i = 0; head->kind == RemoteKind::kPieces && i < head->count; ++i) {
      const auto item = body.take<PieceItem>();
      check(item && item->index < kMostPullItems, "a part is of a block");
      const auto bytes = body.take_bytes(item->bytes);
      check(bytes && (item->status == 0) == (item->bytes > 0), "a part has its bytes");
      for (std::size_t at = 0; at < bytes->size(); ++at) {
        check((*bytes)[at] == content(static_cast<std::size_t>(item->offset) + at), "the bytes are those of the block");
      }
    }
    check(head->kind != RemoteKind::kPieces || body.empty(), "a message ends with its last part");
  }

  DirectoryWriter writer_;
  RemoteReaders readers_;
};

/// Memory with a guard on both sides.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : bytes_(bytes + 2 * kGuardBytes, kRemoteGuard) {}
  [[nodiscard]] std::byte* data() { return bytes_.data() + kGuardBytes; }
  void check_guards() const {
    const auto is_guard = [](std::byte byte) { return byte == kRemoteGuard; };
    check(std::all_of(bytes_.begin(), bytes_.begin() + kGuardBytes, is_guard) &&
              std::all_of(bytes_.end() - kGuardBytes, bytes_.end(), is_guard),
          "nothing is written beyond a block");
  }

 private:
  static constexpr std::ptrdiff_t kGuardBytes = 64;
  std::vector<std::byte> bytes_;
};

/// A reader that has a call of each kind under way: 1 finds two keys, 2 lists, 3 describes, 4 pulls two blocks.
void run_reader(Input& input) {
  constexpr std::uint32_t kSlots = 8;
  const auto peer = std::make_shared<RemotePeer>(
      RemotePeer::Identity{.member = 1, .seat = 64, .slots = kSlots, .requests = kSession}, std::chrono::seconds(60),
      [](const PortMessage& /*message*/) {}, [] {});
  Guarded first(100);
  Guarded second(3000);
  const std::array<Block, 2> blocks{Block{1, 2, 100, 0, 64, 0, 0, 0}, Block{1, 2, 3000, 0, 64, 1, 0, 0}};
  const std::array<void*, 2> destinations{first.data(), second.data()};
  std::array<std::int32_t, 2> statuses{};
  const std::array<Key, 2> keys{key_named("a"), key_named("b")};
  RemoteFind find(*peer, keys, 0, 0);
  RemoteList list(*peer, 0, 3);
  RemoteDescribe describe(*peer);
  RemotePull pull(peer, blocks, destinations.data(), statuses.data());
  while (!input.empty()) {
    const AnyMessage message(input, kAnswers);
    if (!peer->receive(message.head, message.body)) {
      break;
    }
  }
  peer->end(std::errc::bad_message);
  const bool listed = list.finish();
  check(list.blocks().size() <= 3 && (!listed || list.blocks().empty() || list.cursor() > 0), "a list goes on");
  std::uint64_t next = 0;
  for (const auto& [item, key] : list.blocks()) {
    check(!listed || (item.slot >= next && item.bytes <= kMostMemoryBytes), "a list has each slot once");
    next = std::uint64_t{item.slot} + 1;
  }
  check(!listed || list.blocks().empty() || (list.cursor() >= next && list.cursor() <= kSlots), "a list ends");
  for (const FoundItem& item : find.finish()) {
    check(item.status != 0 || (item.epoch != 0 && item.bytes != 0), "what is found makes sense");
    check(item.status != 0 || item.bytes <= kMostMemoryBytes, "a block is not larger than memory can be");
  }
  describe.finish();
  pull.finish();
  check(
      std::all_of(statuses.begin(), statuses.end(), [](auto status) { return status <= 0 && status != -EINPROGRESS; }),
      "each block has a status");
  first.check_guards();
  second.check_guards();
}

/// Frames of a link, as a stream of bytes: the rest of the input.
void run_frames(Input& input) {
  wire::FrameReader reader(std::size_t{1} << 16);
  reader.push(input.take_bytes(std::size_t{1} << 20));
  for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
    for (const wire::Endpoint& place : members_of(**frame)) {
      check(place.port() != 0 && !place.any_address(), "a member can be anywhere but nowhere");
      const auto again = from_wire(to_wire(place));
      check(again && again->text() == place.text(), "an address stays what it is");
    }
    const auto address = port_address_of<LinkAnswer>(**frame);
    check(!address || address->size() == (*frame)->payload.size() - sizeof(LinkAnswer), "an address is the rest");
  }
}

}  // namespace

void run_remote(std::span<const std::byte> bytes) {
  Input input(bytes);
  const unsigned what = input.take<std::uint8_t>() % 3;
  if (what == 1) {
    return run_reader(input);
  }
  if (what == 2) {
    return run_frames(input);
  }
  FuzzOwner owner;
  for (int i = 0; i < 256 && !input.empty(); ++i) {
    owner.step(input);
  }
  owner.finish();
}

}  // namespace fuzz
