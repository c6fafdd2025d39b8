// SPDX-License-Identifier: Apache-2.0
// A member of this node that does not keep to the protocol.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/memfd.hpp"
#include "kv/exchange/channel.hpp"
#include "kv/exchange/directory_writer.hpp"
#include "kv/exchange/leases.hpp"
#include "tests/unit/kv/exchange_fixture.hpp"

namespace exchange_test {

using shmem::exchange::BlockPlace;
using shmem::exchange::Channel;
using shmem::exchange::ChannelMessage;
using shmem::exchange::Entry;
using shmem::exchange::Key;
using shmem::exchange::Kind;
using shmem::exchange::LeaseBoard;
using shmem::exchange::Received;
using shmem::exchange::SeatSocket;

constexpr std::uint64_t kImpostorId = 666;
constexpr std::uint32_t kImpostorSlots = 8;
constexpr std::uint32_t kImpostorQuota = 4;

inline bool readable(int fd, int limit_ms = kLongMs) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, limit_ms) == 1;
}

/// True once the other end has closed the connection.
inline bool is_closed(Channel& channel) {
  std::optional<Received> received;
  while (readable(channel.fd())) {
    if (channel.receive(received) == std::errc::connection_reset) {
      return true;
    }
  }
  return false;
}

inline ChannelMessage message_of(Kind kind, std::uint32_t number) {
  ChannelMessage message;
  message.kind = kind;
  message.member = kImpostorId;
  message.number = number;
  return message;
}

/// A directory that is sealed as it should be, with whatever a test writes into it.
class RawDirectory {
 public:
  RawDirectory()
      : file_(*base::create_memfd("directory", kSize, base::MemfdPages::kUsual, base::MemfdSeals::kOpen)),
        memory_(*base::Mapping::share(file_.get(), kSize)) {
    EXPECT_TRUE(base::keep_pages(file_.get()));
  }
  [[nodiscard]] int file() const { return file_.get(); }
  Entry& entry(std::uint32_t slot) {
    return reinterpret_cast<Entry*>(memory_.data() + shmem::exchange::entries_offset(kImpostorSlots))[slot];
  }
  void publish(const Key& key, const BlockPlace& place) {
    Entry& mine = entry(used_);
    mine.hash.store(key.hash());
    mine.region_and_key_bytes.store(std::uint64_t{place.region} << 32 | key.bytes());
    mine.offset.store(place.offset);
    mine.bytes.store(place.bytes);
    for (std::size_t i = 0; i < key.used_words(); ++i) {
      mine.key[i].store(key.word(i));
    }
    mine.epoch.store(2);
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.data() + shmem::exchange::kIndexOffset);
    std::size_t at = key.hash();
    while (words[at % kWords].load() != shmem::exchange::kEmpty) {
      ++at;
    }
    words[at % kWords].store(shmem::exchange::index_word(key.hash(), used_++));
  }

 private:
  static constexpr std::size_t kSize = shmem::exchange::directory_size(kImpostorSlots);
  static constexpr std::size_t kWords = shmem::exchange::index_words(kImpostorSlots);
  base::UniqueFd file_;
  base::Mapping memory_;
  std::uint32_t used_ = 0;
};

/// A seat whose member does only what a test says.
class Impostor {
 public:
  explicit Impostor(const std::string& name)
      : seat_(*SeatSocket::open(name)), board_(*LeaseBoard::create(kImpostorQuota)) {}

  /// The connection of the next member that wants to read, whose hello has come.
  Channel& reader() {
    EXPECT_TRUE(readable(seat_.socket.fd()));
    EXPECT_EQ(seat_.socket.accept(disposal_,
                                  [this](base::UniqueFd& socket) {
                                    reader_ = Channel(std::move(socket));
                                    return true;
                                  }),
              0U);
    std::optional<Received> hello;
    EXPECT_TRUE(readable(reader_.fd()));
    EXPECT_EQ(reader_.receive(hello), std::errc{});
    EXPECT_TRUE(hello && hello->message.kind == Kind::kHello);
    return reader_;
  }
  [[nodiscard]] ChannelMessage welcome() const {
    ChannelMessage message = message_of(Kind::kWelcome, kImpostorSlots);
    message.quota = kImpostorQuota;
    message.lease_ms = 1000;
    return message;
  }
  void send(const ChannelMessage& message, std::vector<int> files) {
    EXPECT_EQ(reader_.send(message, files), std::errc{});
  }
  void send_region(std::uint32_t number, int file, std::uint64_t offset, std::uint64_t bytes) {
    ChannelMessage message = message_of(Kind::kRegion, number);
    message.offset = offset;
    message.bytes = bytes;
    send(message, {file});
  }
  [[nodiscard]] std::vector<int> files() const { return {directory_.file(), board_.file()}; }
  Channel& channel() { return reader_; }
  [[nodiscard]] std::uint32_t seat() const { return seat_.number; }

  Entry& entry(std::uint32_t slot) { return directory_.entry(slot); }
  void publish(const std::string& key, const BlockPlace& place) {
    directory_.publish(*Key::make(key.data(), key.size()), place);
  }

 private:
  base::Disposal disposal_;
  SeatSocket seat_;
  RawDirectory directory_;
  LeaseBoard board_;
  Channel reader_;
};

/// Opens a member while `act` answers its connection.
template <typename Act>
std::unique_ptr<Member> open_beside(const std::string& name, Act act) {
  std::unique_ptr<Member> member;
  std::thread opening([&] { member = std::make_unique<Member>(name); });
  act();
  opening.join();
  return member;
}

/// A member with an impostor that has welcomed it and sent one region of a page.
struct Beside {
  explicit Beside(int number) : impostor(exchange_name(number)), memory(*base::create_memfd("memory", 4096)) {
    member = open_beside(exchange_name(number), [&] {
      impostor.reader();
      impostor.send(impostor.welcome(), impostor.files());
      impostor.send_region(1, memory.get(), 0, 4096);
    });
  }
  Impostor impostor;
  base::UniqueFd memory;
  std::unique_ptr<Member> member;
};

}  // namespace exchange_test
