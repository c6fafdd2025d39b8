// SPDX-License-Identifier: Apache-2.0
// A member of an exchange for tests that kill members: exchange_worker own|read|hold EXCHANGE NUMBER [ADDRESSES].
//
// With ADDRESSES, which may be empty, it is connected to other nodes, and first prints "at" and where it listens.
// own: publishes blocks that it changes all the time: withdraws one, writes it anew, publishes it with the next layout.
// read: pulls blocks of all owners, and ends with 1 at the first byte that is not of the layout that was found.
// hold: leases a block, and again and again.
// Each prints "ready" once it works; own and read then print what they have done, five times a second.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shmemx.h"
#include "shmemx_exchange.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlocks = 32;
constexpr std::size_t kWords = 512;
constexpr std::size_t kBytes = kWords * 8;
constexpr int kMostOwners = 4;

/// Word i of a block tells which block it is of, and of which layout.
std::uint64_t word_of(int owner, std::size_t block, std::uint64_t layout, std::size_t i) {
  return (layout * 0x9e37'79b9'7f4a'7c15U) ^ (static_cast<std::uint64_t>(owner) << 48) ^ (block << 32) ^ i;
}

std::string key_of(int owner, std::size_t block) {
  return "owner " + std::to_string(owner) + " block " + std::to_string(block);
}

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "exchange_worker: %s: %s\n", what, shmemx_error_text());
  std::exit(1);
}

shmemx_exchange_t* join(const char* name) {
  shmemx_exchange_options_t options{};
  options.lease_ms = 200;
  shmemx_exchange_t* exchange = nullptr;
  if (shmemx_exchange_open(name, &options, &exchange) != 0) {
    die("open");
  }
  return exchange;
}

/// Waits for answers for longer than any machine is busy, unless a test says otherwise.
void connect(shmemx_exchange_t* exchange, const char* members) {
  const char* const answer_ms = std::getenv("EXCHANGE_ANSWER_MS");
  const shmemx_exchange_network_t network{
      .listen = "127.0.0.1:0",
      .members = members,
      .secret = "a secret",
      .answer_ms = static_cast<std::uint32_t>(std::atoi(answer_ms != nullptr ? answer_ms : "20000")),
      .reserved = {0, 0, 0, 0, 0}};
  char address[64] = "";
  if (shmemx_exchange_connect(exchange, &network) != 0 ||
      shmemx_exchange_address(exchange, address, sizeof address) < 0) {
    die("connect");
  }
  std::printf("at %s\n", address);
  std::fflush(stdout);
}

/// Prints lines, but not more often than kPeriod.
class Report {
 public:
  void ready() {
    std::printf("ready\n");
    std::fflush(stdout);
  }
  template <typename... Values>
  void now_and_then(const char* format, Values... values) {
    if (Clock::now() >= next_) {
      next_ = Clock::now() + kPeriod;
      std::printf(format, values...);
      std::fflush(stdout);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kPeriod{200};
  Clock::time_point next_ = Clock::now() + kPeriod;
};

void own(shmemx_exchange_t* exchange, int owner) {
  shmemx_memory_t memory{.address = nullptr, .bytes = kBlocks * kBytes, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  if (shmemx_exchange_register(exchange, &memory, &region) != 0) {
    die("register");
  }
  // Another start of this owner begins with other layouts.
  std::uint64_t layout = std::random_device{}();
  std::array<std::uint64_t*, kBlocks> blocks{};
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks[i] = static_cast<std::uint64_t*>(memory.address) + i * kWords;
  }
  Report report;
  std::uint64_t changes = 0;
  Clock::duration longest{};
  for (std::size_t turn = 0;; ++turn) {
    const std::size_t block = turn % kBlocks;
    const std::string key = key_of(owner, block);
    const shmemx_exchange_key_t name{key.data(), key.size()};
    if (turn >= kBlocks) {
      const auto begin = Clock::now();
      if (shmemx_exchange_withdraw(exchange, &name, 1, 20'000'000'000) != 0) {
        die("withdraw");
      }
      longest = std::max(longest, Clock::now() - begin);
    }
    ++layout;
    for (std::size_t i = 0; i < kWords; ++i) {
      blocks[block][i] = word_of(owner, block, layout, i);
    }
    shmemx_exchange_entry_t entry{
        .key = name, .region = region, .status = 0, .offset = block * kBytes, .bytes = kBytes, .layout = layout};
    if (shmemx_exchange_publish(exchange, &entry, 1) != 1) {
      die("publish");
    }
    if (turn == kBlocks) {
      report.ready();
    }
    report.now_and_then(
        "changed %" PRIu64 " longest %" PRId64 " ms\n", ++changes,
        static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(longest).count()));
  }
}

void read(shmemx_exchange_t* exchange) {
  std::vector<std::string> keys;
  std::vector<shmemx_exchange_key_t> names;
  for (int owner = 0; owner < kMostOwners; ++owner) {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      keys.push_back(key_of(owner, block));
    }
  }
  for (const auto& key : keys) {
    names.push_back({key.data(), key.size()});
  }
  std::vector<shmemx_exchange_block_t> blocks(keys.size());
  std::vector<std::int32_t> statuses(keys.size());
  std::vector<std::uint64_t> room(keys.size() * kWords);
  std::vector<void*> destinations;
  Report report;
  std::uint64_t right = 0;
  std::array<std::uint64_t, 200> failed{};
  Clock::duration longest{};
  const auto timed = [&](auto call) {
    const auto begin = Clock::now();
    call();
    longest = std::max(longest, Clock::now() - begin);
  };
  // Blocks are withdrawn, and owners killed, between a find and a pull.
  constexpr std::chrono::milliseconds kThinks{2};
  for (std::uint64_t turn = 0;; ++turn) {
    const std::uint32_t lease_ms = turn % 2 == 0 ? 0 : 100;  // with leases, and without
    timed([&] { shmemx_exchange_find(exchange, names.data(), names.size(), 0, lease_ms, blocks.data()); });
    destinations.clear();
    std::vector<shmemx_exchange_block_t> found;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].status == 0) {
        found.push_back(blocks[i]);
        which.push_back(i);
        destinations.push_back(room.data() + i * kWords);
      }
    }
    if (turn % 4 == 3) {
      std::this_thread::sleep_for(kThinks);
    }
    timed([&] {
      shmemx_exchange_pull(exchange, found.data(), destinations.data(), found.size(), statuses.data(), nullptr);
    });
    timed([&] { shmemx_exchange_release(exchange, blocks.data(), blocks.size()); });
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (statuses[i] != 0) {
        ++failed[static_cast<std::size_t>(-statuses[i]) % failed.size()];
        continue;
      }
      const int owner = static_cast<int>(which[i] / kBlocks);
      for (std::size_t word = 0; word < kWords; ++word) {
        if (room[which[i] * kWords + word] != word_of(owner, which[i] % kBlocks, found[i].layout, word)) {
          std::printf("wrong bytes: %s, word %zu\n", keys[which[i]].c_str(), word);
          std::exit(1);
        }
      }
      if (++right == 1) {
        report.ready();
      }
    }
    report.now_and_then(
        "right %" PRIu64 " stale %" PRIu64 " dead %" PRIu64 " silent %" PRIu64 " corrupt %" PRIu64 " longest %" PRId64
        " ms\n",
        right, failed[ESTALE], failed[EOWNERDEAD], failed[ETIMEDOUT], failed[EBADMSG],
        static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(longest).count()));
  }
}

void hold(shmemx_exchange_t* exchange) {
  Report report;
  bool ready = false;
  while (true) {
    const std::string key = key_of(0, 0);
    const shmemx_exchange_key_t name{key.data(), key.size()};
    shmemx_exchange_block_t block{};
    if (shmemx_exchange_find(exchange, &name, 1, 0, 60'000, &block) == 1) {
      if (!ready) {
        report.ready();
        ready = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
      shmemx_exchange_release(exchange, &block, 1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    return 2;
  }
  const std::string role = argv[1];
  shmemx_exchange_t* const exchange = join(argv[2]);
  if (argc == 5) {
    connect(exchange, argv[4]);
  }
  if (role == "own") {
    own(exchange, std::atoi(argv[3]));
  } else if (role == "read") {
    read(exchange);
  } else {
    hold(exchange);
  }
}
