// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/readers.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace shmem::exchange {
namespace {

/// Connections to this member: one of each other member, and a few that have not said hello.
constexpr std::size_t kMostReaders = kMostMembers + 16;

}  // namespace

Readers::~Readers() {
  for (auto& reader : readers_) {
    end(std::move(reader));
  }
}

/// The other member sees the end at once, and what it has sent is closed where no call waits.
void Readers::end(std::unique_ptr<Reader> reader) noexcept {
  reader->channel.shut();
  disposal_.take(std::move(reader));
}

bool Readers::add(Channel channel) {
  const std::lock_guard lock(mutex_);
  if (!make_room()) {
    channel.shut();
    disposal_.take(std::move(channel));
    return false;
  }
  readers_.push_back(std::make_unique<Reader>(Reader{std::move(channel), nullptr}));
  return true;
}

/// Those that connect and say nothing give way, the oldest first.
bool Readers::make_room() {
  if (readers_.size() < kMostReaders) {
    return true;
  }
  const auto silent =
      std::find_if(readers_.begin(), readers_.end(), [](const auto& reader) { return reader->board == nullptr; });
  if (silent == readers_.end()) {
    return false;
  }
  end(std::move(*silent));
  readers_.erase(silent);
  return true;
}

Readers::Said Readers::read(std::size_t i) {
  const std::lock_guard lock(mutex_);
  Said said{.pid = readers_[i]->channel.peer()};
  if (!answer(*readers_[i], said)) {
    end(std::move(readers_[i]));  // its leases end
    readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return said;
}

/// False: the connection is over.
bool Readers::answer(Reader& reader, Said& said) try {
  std::optional<Received> received;
  const auto error = reader.channel.receive(received, 0);  // a reader has nothing to share
  if (error == std::errc{} && !received) {
    return true;
  }
  if (error == std::errc{} && received->message.kind == Kind::kHello && reader.board == nullptr) {
    said.seat = received->message.number;
    return welcome(reader);
  }
  said.refusal = error != std::errc{} ? error : std::errc::protocol_error;
  if (error == std::errc::protocol_not_supported) {
    reader.channel.send(self_.message(Kind::kGone, 0));  // whatever it says there: its version tells the other member
  }
  return false;
} catch (const std::bad_alloc&) {
  return false;  // it connects again
}

bool Readers::welcome(Reader& reader) {
  auto board = LeaseBoard::create(self_.quota, self_.wants_use ? self_.slots : 0);
  if (!board) {
    return false;
  }
  reader.board = std::make_unique<LeaseBoard>(*std::move(board));
  ChannelMessage answer = self_.message(Kind::kWelcome, self_.slots);
  answer.quota = self_.quota;
  answer.lease_ms = self_.lease_ms;
  answer.flags = self_.wants_use ? kWantsUse : 0;
  const std::array<int, 2> files{self_.directory, reader.board->file()};
  // The regions come first, so that a reader that has the directory has the memory of every block in it.
  const bool sent = std::all_of(regions_.begin(), regions_.end(),
                                [&](const auto& region) { return send_region(reader, region.first, region.second); }) &&
                    reader.channel.send(answer, files) == std::errc{};
  reader.board->handed_over();
  return sent;
}

bool Readers::send_region(Reader& reader, std::uint32_t number, const Region& region) {
  ChannelMessage news = self_.message(Kind::kRegion, number);
  news.offset = region.range.offset;
  news.bytes = region.range.bytes;
  const int file = region.file.get();
  return reader.channel.send(news, {&file, 1}) == std::errc{};
}

// A reader that does not take its messages loses the connection, by which it notices; its end is seen here as well.

void Readers::add_region(std::uint32_t number, base::UniqueFd file, const FileRange& range) {
  const std::lock_guard lock(mutex_);
  const Region& region = regions_[number] = {std::move(file), range};
  for (const auto& reader : readers_) {
    if (reader->board != nullptr && !send_region(*reader, number, region)) {
      ::shutdown(reader->channel.fd(), SHUT_RDWR);
    }
  }
}

void Readers::remove_region(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  regions_.erase(number);
  for (const auto& reader : readers_) {
    if (reader->board != nullptr && reader->channel.send(self_.message(Kind::kGone, number)) != std::errc{}) {
      ::shutdown(reader->channel.fd(), SHUT_RDWR);
    }
  }
}

std::map<std::uint32_t, Readers::Region> Readers::regions() const {
  const std::lock_guard lock(mutex_);
  std::map<std::uint32_t, Region> copies;
  for (const auto& [number, region] : regions_) {
    copies[number] = {base::UniqueFd(::fcntl(region.file.get(), F_DUPFD_CLOEXEC, 0)), region.range};
  }
  return copies;
}

bool Readers::is_leased(std::uint32_t slot, std::uint32_t now) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(readers_.begin(), readers_.end(),
                     [&](const auto& reader) { return reader->board != nullptr && reader->board->has(slot, now); });
}

bool Readers::take_use(std::uint32_t slot) const {
  const std::lock_guard lock(mutex_);
  // All of them: what one has said must not count again later.
  return std::count_if(readers_.begin(), readers_.end(), [&](const auto& reader) {
           return reader->board != nullptr && reader->board->take_use(slot);
         }) > 0;
}

std::vector<std::uint32_t> Readers::take_used(std::uint32_t end, std::size_t most) {
  std::vector<std::uint32_t> slots;
  const std::lock_guard lock(mutex_);
  for (const auto& reader : readers_) {
    if (reader->board != nullptr) {
      reader->board->take_used(end, slots.size() + most, slots);
    }
  }
  return slots;
}

std::size_t Readers::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(readers_.begin(), readers_.end(), [](const auto& reader) { return reader->board != nullptr; }));
}

}  // namespace shmem::exchange
