// SPDX-License-Identifier: Apache-2.0
// The leaders of nodes as threads of the test, each with a port of the device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shmem/barrier/gba_span.hpp"
#include "tests/unit/shmem/board_network.hpp"

namespace shmem_test {

/// `Way` is how they meet.
template <typename Way>
struct Leader {
  Way& way;
  shmem::LeaderGroup& leaders;
  shmem::GbaPort& port;
  int me;
  std::function<bool()> barrier;  // false: somebody had not come
  [[nodiscard]] shmem::GbaMember wanting() const {
    return {&port, "", true, {}, std::chrono::seconds{5}};  // so long a device that was lost may take to come back
  }
};

/// Runs `body` on all of them. `make` gives a leader's way, `meet` is a barrier of it. They come at different times.
template <typename Way, typename Make, typename Meet>
void run_leaders(int size, Make make, Meet meet, const std::function<void(Leader<Way>&)>& body,
                 std::chrono::milliseconds limit) {
  constexpr int kSlot = 5;  // of member 0; the others have other ones
  Wires wires;
  std::deque<shmem::FarBoard> boards(static_cast<std::size_t>(size));
  std::vector<std::atomic<std::uint64_t>> entered(static_cast<std::size_t>(size));
  std::vector<int> pes;
  for (int i = 0; i < size; ++i) pes.push_back(i);
  std::vector<std::thread> threads;
  for (int i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      BoardNetwork network(wires, i, boards);
      shmem::LeaderGroup leaders(network, pes, i, 7);
      shmem::GbaPort port([] { return shmem::open_gba(0); });
      ASSERT_TRUE(port.open());
      Way way = make(shmem::GbaSpan::Means{.network = network,
                                           .leaders = leaders,
                                           .pes = pes,
                                           .board = boards[static_cast<std::size_t>(i)],
                                           .slot = kSlot + i,
                                           .policy = shmem::wait_policy(size),
                                           .name = [](int pe) { return "PE " + std::to_string(pe); },
                                           .check = [] { return shmem::Result<void>{}; },
                                           .limit = limit});
      Leader<Way> leader{way, leaders, port, i, {}};
      std::minstd_rand random(static_cast<unsigned>(i) + 1);
      std::uint64_t k = 0;
      leader.barrier = [&] {
        if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
        entered[static_cast<std::size_t>(i)].store(++k, std::memory_order_relaxed);
        const auto ok = meet(leader);
        EXPECT_TRUE(ok) << ok.error().text;
        return std::all_of(entered.begin(), entered.end(),
                           [&](const auto& theirs) { return theirs.load(std::memory_order_relaxed) >= k; });
      };
      body(leader);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace shmem_test
