// SPDX-License-Identifier: Apache-2.0
// Runs the leaders of nodes as threads of the test, each with a port of the device.
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

#include "shmem/offload/inter_node_barrier.hpp"
#include "tests/unit/shmem/board_network.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace shmem_test {

/// One leader. `Way` is the type of its barrier.
template <typename Way>
struct Leader {
  Way& way;
  shmem::ProcessGroup& leaders;
  shmem::GbaPort& port;
  int me = 0;
  std::function<bool()> barrier;  // false if it ended before all had arrived
  [[nodiscard]] shmem::GbaMember wanting() const {
    return {&port, "", true, {}, std::chrono::seconds{5}};  // the time that a lost device may take to return
  }
};

/// Runs `body` on all leaders, which arrive at different times. `make` makes the Way of a leader, `barrier` calls it.
template <typename Way, typename Make, typename Barrier>
void run_leaders(int size, Make make, Barrier barrier, const std::function<void(Leader<Way>&)>& body,
                 std::chrono::milliseconds limit) {
  constexpr int kSlot = 5;  // the slot of member 0; each member has another one
  Wires wires;
  std::deque<shmem::RemoteBoard> boards(static_cast<std::size_t>(size));
  std::vector<std::atomic<std::uint64_t>> entered(static_cast<std::size_t>(size));
  std::vector<int> pes;
  pes.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    pes.push_back(i);
  }
  shmem::Options options;
  options.barrier_timeout = limit;
  const auto run = [&](shmem::Job& job) {
    const int i = job.me;
    BoardNetwork network(wires, i, boards);
    shmem::ProcessGroup leaders(network, pes, i, 7);
    shmem::GbaPort port(0);
    ASSERT_TRUE(port.open());
    Way way = make(shmem::InterNodeBarrier::Means{.job = job,
                                                  .network = network,
                                                  .leaders = leaders,
                                                  .pes = pes,
                                                  .board = boards[static_cast<std::size_t>(i)],
                                                  .slot = kSlot + i,
                                                  .policy = shmem::wait_policy(size),
                                                  .interrupted = [] { return false; },
                                                  .name = [](int pe) { return "PE " + std::to_string(pe); }});
    Leader<Way> leader{way, leaders, port, i, {}};
    std::minstd_rand random(static_cast<unsigned>(i) + 1);
    std::uint64_t k = 0;
    leader.barrier = [&] {
      if (random() % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
      }
      entered[static_cast<std::size_t>(i)].store(++k, std::memory_order_relaxed);
      const auto ok = barrier(leader);
      EXPECT_TRUE(ok) << ok.error().text;
      return std::all_of(entered.begin(), entered.end(),
                         [&](const auto& theirs) { return theirs.load(std::memory_order_relaxed) >= k; });
    };
    body(leader);
  };
  run_job(size, run, options);
}

}  // namespace shmem_test
