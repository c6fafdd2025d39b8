// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/remote_readers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "shmem/memory/copy.hpp"
#include "shmem/memory/ordering.hpp"

namespace shmem::exchange {
namespace {

constexpr auto kStaleBlock = static_cast<std::errc>(ESTALE);
/// Less room is not worth a part of a block.
constexpr std::size_t kLeastPiece = 1024;

std::uint32_t lease_end(std::uint64_t wanted_ms, std::uint32_t most_ms) {
  return lease_clock() + static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted_ms, most_ms));
}

}  // namespace

Result<void> RemoteReaders::add_region(std::uint32_t number, base::UniqueFd file, const FileRange& range) {
  auto memory = PeerMemory::open(std::move(file), range, nullptr);
  if (!memory) {
    return memory.error();
  }
  const std::lock_guard lock(mutex_);
  regions_[number] = std::make_shared<const PeerMemory>(*std::move(memory));
  return {};
}

void RemoteReaders::remove_region(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  regions_.erase(number);
}

Result<void> RemoteReaders::add(std::uint64_t session, std::uint64_t route, std::uint64_t answers) {
  auto board = LeaseBoard::create(limits_.quota);
  if (!board) {
    return board.error();
  }
  auto memory = base::Mapping::share(board->file(), lease_bytes(limits_.quota));
  if (!memory) {
    return memory.error();
  }
  board->handed_over();
  const std::lock_guard lock(mutex_);
  readers_[session] = std::unique_ptr<Reader>(new Reader{
      .route = route, .answers = answers, .board = *std::move(board), .leases = {*std::move(memory), limits_.quota}});
  return {};
}

void RemoteReaders::remove(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  readers_.erase(session);
}

bool RemoteReaders::is_leased(std::uint32_t slot, std::uint32_t now) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(readers_.begin(), readers_.end(),
                     [&](const auto& reader) { return reader.second->board.has(slot, now); });
}

std::size_t RemoteReaders::count() const {
  const std::lock_guard lock(mutex_);
  return readers_.size();
}

RemoteHead RemoteReaders::answer(const Reader& reader, RemoteKind kind, std::uint64_t number) const {
  RemoteHead head;
  head.kind = kind;
  head.session = reader.answers;
  head.number = number;
  return head;
}

RemoteReaders::Outcome RemoteReaders::receive(const RemoteHead& head, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = readers_.find(head.session);
  if (found == readers_.end()) {
    return Outcome::kForeign;
  }
  Reader& reader = *found->second;
  BodyReader body(bytes);
  bool valid = false;
  switch (head.kind) {
    case RemoteKind::kFind:
      valid = may_answer(reader) && find(reader, head, body);
      break;
    case RemoteKind::kPull:
      valid = begin_pulls(reader, head, body);
      break;
    case RemoteKind::kRelease:
      valid = release(reader, head, body);
      break;
    case RemoteKind::kList:
      valid = may_answer(reader) && list(reader, head, body);
      break;
    case RemoteKind::kDescribe:
      valid = may_answer(reader) && describe(reader, head, body);
      break;
    case RemoteKind::kFound:
    case RemoteKind::kPieces:
    case RemoteKind::kListed:
    case RemoteKind::kDescribed:
      break;
  }
  return valid ? Outcome::kDone : Outcome::kInvalid;
}

/// A reader that asks and takes no answers would fill the memory of this process with them.
bool RemoteReaders::may_answer(const Reader& reader) const {
  return reader.answers_under_way->load(std::memory_order_relaxed) < kMostAnswersUnderWay;
}

void RemoteReaders::send(const Reader& reader, const UnderWay& under_way, PortMessage message) const {
  message.under_way = under_way;
  under_way->fetch_add(1, std::memory_order_relaxed);
  send_(reader.route, std::move(message));
}

bool RemoteReaders::find(Reader& reader, const RemoteHead& head, BodyReader& body) {
  if (head.count == 0 || head.count > kMostRemoteKeys) {
    return false;
  }
  std::array<Key, kMostRemoteKeys> keys;
  for (std::size_t i = 0; i < head.count; ++i) {
    const auto bytes = body.take<std::uint32_t>();
    const auto key = bytes ? take_key(body, *bytes) : std::nullopt;
    if (!key) {
      return false;
    }
    keys[i] = *key;
  }
  if (!body.empty()) {
    return false;
  }
  BodyWriter items(head.count * sizeof(FoundItem));
  for (std::size_t i = 0; i < head.count; ++i) {
    items.add(find_one(reader, keys[i], head.first, head.second));
  }
  RemoteHead found = answer(reader, RemoteKind::kFound, head.number);
  found.count = head.count;
  send(reader, reader.answers_under_way, items.take(found));
  return true;
}

FoundItem RemoteReaders::find_one(Reader& reader, const Key& key, std::uint64_t layout, std::uint64_t lease_ms) {
  FoundItem item;
  Found found;
  switch (directory_.find(key, layout, found)) {
    case DirectoryReader::Outcome::kFound:
      item.epoch = found.epoch;
      item.bytes = found.place.bytes;
      item.layout = found.place.layout;
      item.slot = found.slot;
      item.status = lease_ms > 0 ? lease(reader, item, lease_ms) : 0;
      break;
    case DirectoryReader::Outcome::kOtherLayout:
      item.status = -EPROTOTYPE;
      break;
    case DirectoryReader::Outcome::kMissing:
    case DirectoryReader::Outcome::kCorrupt:
      item.status = -ENOENT;
      break;
  }
  return item;
}

/// As LocalPeer::lease, on behalf of the reader.
std::int32_t RemoteReaders::lease(Reader& reader, FoundItem& item, std::uint64_t lease_ms) {
  const auto word = reader.leases.hold(item.slot);
  if (!word) {
    return -EDQUOT;
  }
  reader.leases.set(*word, item.slot, lease_end(lease_ms, limits_.lease_ms));
  // A withdraw in another thread sees the lease, or this one sees the changed epoch.
  quiet();
  if (!directory_.still(item.slot, item.epoch)) {
    reader.leases.end_lease(*word, item.slot);
    reader.leases.give(Leases::Use::kHeld, {&*word, 1});
    return -ENOENT;
  }
  item.lease = *word + 1;
  return 0;
}

bool RemoteReaders::release(Reader& reader, const RemoteHead& head, BodyReader& body) {
  if (head.count > kMostReleased) {
    return false;
  }
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const auto item = body.take<ReleaseItem>();
    if (!item) {
      return false;
    }
    const std::uint32_t word = item->lease - 1;
    if (reader.leases.end_lease(word, item->slot)) {
      reader.leases.give(Leases::Use::kHeld, {&word, 1});
    }
  }
  return body.empty();
}

bool RemoteReaders::list(Reader& reader, const RemoteHead& head, const BodyReader& body) {
  if (!body.empty()) {
    return false;
  }
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(head.second, kMostListed));
  BodyWriter items(most * (sizeof(FoundItem) + kMostKeyBytes) + 1);
  RemoteHead listed = answer(reader, RemoteKind::kListed, head.number);
  listed.first = head.first;
  Found found;
  Key key;
  while (listed.count < most && listed.first < directory_.slots() &&
         directory_.next(static_cast<std::uint32_t>(listed.first), found, key)) {
    listed.first = std::uint64_t{found.slot} + 1;
    ++listed.count;
    items.add(FoundItem{.epoch = found.epoch,
                        .bytes = found.place.bytes,
                        .layout = found.place.layout,
                        .slot = found.slot,
                        .lease = 0,
                        .status = 0,
                        .key_bytes = key.bytes()});
    items.add_bytes(key.data(), key.bytes());
  }
  send(reader, reader.answers_under_way, items.take(listed));
  return true;
}

bool RemoteReaders::describe(Reader& reader, const RemoteHead& head, const BodyReader& body) {
  RemoteHead described = answer(reader, RemoteKind::kDescribed, head.number);
  described.first = directory_.blocks();
  described.second = directory_.bytes();
  send(reader, reader.answers_under_way, BodyWriter(1).take(described));
  return body.empty();
}

bool RemoteReaders::begin_pulls(Reader& reader, const RemoteHead& head, BodyReader& body) {
  if (head.count == 0 || head.count > kMostPullItems || reader.pulls.size() + head.count > kMostRemotePulls) {
    return false;
  }
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const auto item = body.take<PullItem>();
    if (!item || item->bytes == 0) {
      return false;
    }
    reader.pulls.push_back({.request = head.number, .index = i, .item = *item});
  }
  return body.empty();
}

bool RemoteReaders::turn() {
  bool more = false;
  const std::lock_guard lock(mutex_);
  for (const auto& [session, reader] : readers_) {
    // Relaxed: counted down in the thread that calls this.
    if (!reader->pulls.empty() && reader->pieces_under_way->load(std::memory_order_relaxed) < kMostMessagesUnderWay) {
      send_pieces(*reader);
      more = true;
    }
  }
  return more;
}

/// One message with parts of the blocks of one request.
void RemoteReaders::send_pieces(Reader& reader) {
  RemoteHead head = answer(reader, RemoteKind::kPieces, reader.pulls.front().request);
  // Small requests have small messages: the rest of what is left of them is what their blocks say they have.
  std::uint64_t wanted = 0;
  for (const Pull& pull : reader.pulls) {
    if (pull.request != head.number || wanted >= kLongestBody) {
      break;
    }
    wanted += sizeof(PieceItem) + std::min<std::uint64_t>(pull.item.bytes, kLongestBody);
  }
  BodyWriter body(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, kLongestBody)));
  while (!reader.pulls.empty() && reader.pulls.front().request == head.number && body.left() > sizeof(PieceItem)) {
    Pull& pull = reader.pulls.front();
    const std::uint64_t rest = pull.item.bytes - pull.done;
    if (head.count > 0 && body.left() - sizeof(PieceItem) < std::min<std::uint64_t>(rest, kLeastPiece)) {
      break;
    }
    ++head.count;
    if (add_piece(reader, pull, body)) {
      reader.pulls.pop_front();
    }
  }
  send(reader, reader.pieces_under_way, body.take(head));
}

/// True: that was the last one of the block.
bool RemoteReaders::add_piece(Reader& reader, Pull& pull, BodyWriter& body) {
  auto error = pull.word ? std::errc{} : begin(reader, pull);
  if (error == std::errc{}) {
    error = copy_piece(reader, pull, body);
  }
  if (error != std::errc{}) {
    body.add(PieceItem{pull.index, -static_cast<std::int32_t>(error), 0, 0});
  } else if (pull.done < pull.item.bytes) {
    return false;
  }
  if (pull.word) {
    reader.leases.give(Leases::Use::kPull, {&*pull.word, 1});
  }
  return true;
}

std::errc RemoteReaders::begin(Reader& reader, Pull& pull) {
  std::uint32_t word = 0;
  // Only the first pull of a reader has one.
  if (reader.leases.take(Leases::Use::kPull, {&word, 1}) == 0) {
    return std::errc::resource_unavailable_try_again;
  }
  pull.word = word;
  reader.leases.set(word, pull.item.slot, lease_end(limits_.lease_ms, limits_.lease_ms));
  quiet();  // as in lease()
  BlockPlace place;
  if (const auto error = directory_.read(pull.item.slot, pull.item.epoch, place); error != std::errc{}) {
    return error;
  }
  if (place.bytes != pull.item.bytes) {
    return std::errc::invalid_argument;  // not what this member has answered
  }
  const auto region = regions_.find(place.region);
  if (region == regions_.end() || !region->second->has(place.offset, place.bytes)) {
    return std::errc::io_error;
  }
  pull.memory = region->second;
  pull.at = place.offset;
  return {};
}

/// Copies as much as there is room for, with its PieceItem, or nothing.
std::errc RemoteReaders::copy_piece(Reader& reader, Pull& pull, BodyWriter& body) {
  const std::uint64_t bytes = std::min<std::uint64_t>(pull.item.bytes - pull.done, body.left() - sizeof(PieceItem));
  reader.leases.set(*pull.word, pull.item.slot, lease_end(limits_.lease_ms, limits_.lease_ms));
  std::byte* const item = body.reserve(sizeof(PieceItem));
  std::byte* const to = body.reserve(static_cast<std::size_t>(bytes));
  const std::uint64_t from = pull.at + pull.done;
  std::errc error{};
  if (const std::byte* const mapped = pull.memory->at(from); mapped != nullptr) {
    copy_bytes(to, mapped, static_cast<std::size_t>(bytes));
  } else {
    error = pull.memory->read(from, to, bytes);
  }
  // What was copied is what the epoch says, unless that has changed by now.
  after_reads();
  if (error == std::errc{} && !directory_.still(pull.item.slot, pull.item.epoch)) {
    error = kStaleBlock;
  }
  if (error != std::errc{}) {
    body.unreserve(sizeof(PieceItem) + static_cast<std::size_t>(bytes));
    return error;
  }
  const PieceItem piece{pull.index, 0, pull.done, bytes};
  std::memcpy(item, &piece, sizeof piece);
  pull.done += bytes;
  return {};
}

}  // namespace shmem::exchange
