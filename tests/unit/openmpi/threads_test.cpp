// SPDX-License-Identifier: Apache-2.0
// The barriers of the Open MPI components between threads: all members see after a barrier, in plain memory, what the
// others stored before it, whichever way the barrier is completed. Meant for ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "openmpi/common/gba_board.h"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/fake_gba.hpp"

namespace {

constexpr std::uint64_t kBefore = (std::uint64_t{1} << 32) - 3;
constexpr std::uint32_t kLocals = 3;  // per node: members 0 and 1 hold a port, 2 shares that of 1
constexpr std::uint32_t kHolders = 2;
constexpr std::uint32_t kSharer = 2;
constexpr std::uint32_t kSharers[] = {kSharer};

struct Message {
  std::uint64_t k, votes;
};

/// Messages to the leader of a node.
class Inbox {
 public:
  void put(Message message) {
    const std::lock_guard guard(lock_);
    messages_.push_back(message);
  }
  void empty_into(gba_ompi_barrier_t& barrier) {
    const std::lock_guard guard(lock_);
    for (; !messages_.empty(); messages_.pop_front()) {
      gba_ompi_barrier_receive(&barrier, messages_.front().k, messages_.front().votes);
    }
  }

 private:
  std::mutex lock_;
  std::deque<Message> messages_;
};

struct Cell {
  alignas(64) std::uint64_t of[2] = {};  // by the parity of the barrier: a value must stay until all have read it
};

class Job {
 public:
  Job(std::size_t nodes, std::uint64_t barriers)
      : barriers_(barriers), boards_(nodes), inboxes_(nodes), cells_(nodes * kLocals), last_(nodes * kLocals) {
    gba_ompi_board_name_t name;
    for (auto& board : boards_) {
      EXPECT_EQ(gba_ompi_board_make(kLocals, &board, &name), 0);
    }
    EXPECT_EQ(gba_open(nullptr, &owner_), 0);
    EXPECT_EQ(gba_group_alloc(owner_, static_cast<std::uint32_t>(nodes) * kHolders, kBefore, &handle_), 0);
    EXPECT_EQ(gba_group_enable(owner_, &handle_), 0);
  }
  ~Job() {
    EXPECT_EQ(gba_group_free(owner_, &handle_), 0);
    gba_close(owner_);
    for (auto& board : boards_) {
      gba_ompi_board_close(&board);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Returns the last barrier that was completed here, the same for all members.
  std::uint64_t run() {
    std::vector<std::thread> threads;
    for (std::size_t node = 0; node < boards_.size(); ++node) {
      for (std::uint32_t local = 0; local < kLocals; ++local) {
        threads.emplace_back([this, node, local] { be(node, local); });
      }
    }
    for (auto& thread : threads) {
      thread.join();
    }
    for (const std::uint64_t last : last_) {
      EXPECT_EQ(last, last_[0]);
    }
    return last_[0];
  }

 private:
  struct Teller {
    Job* job;
    std::size_t node;
  };

  static void tell(void* context, std::uint64_t k, std::uint64_t votes) {
    const auto& teller = *static_cast<const Teller*>(context);
    for (std::size_t node = 0; node < teller.job->inboxes_.size(); ++node) {
      if (node != teller.node) {
        teller.job->inboxes_[node].put({k, votes});
      }
    }
  }

  void be(std::size_t node, std::uint32_t local) {
    Teller teller{this, node};
    gba_barrier_port* port = nullptr;
    if (local < kHolders) {
      EXPECT_EQ(gba_barrier_port_open(nullptr, &port), 0);
    }
    const gba_ompi_place_t place{
        .local = local,
        .holder = local == kSharer ? 1 : local,
        .sharers = kSharers,
        .sharer_count = local == 1 ? 1U : 0U,
        .port = port,
        .ports = handle_.member_count,
        .port_number = local < kHolders ? static_cast<std::uint32_t>(node) * kHolders + local : 0};
    const gba_ompi_remote_t remote{&teller, static_cast<std::uint32_t>(boards_.size() - 1), tell};
    gba_ompi_barrier_t barrier{};
    EXPECT_EQ(gba_ompi_barrier_make(&barrier, &boards_[node], &place, &remote), 0);
    EXPECT_EQ(gba_barrier_join(barrier.lossless, &handle_), 0);
    gba_ompi_barrier_begin(&barrier, kBefore);
    while (barrier.k < kBefore + barriers_ && !barrier.over) {
      cells_[node * kLocals + local].of[(barrier.k + 1) & 1] = barrier.k + 1;
      gba_ompi_barrier_start(&barrier);
      finish(barrier, node);
      for (const Cell& cell : cells_) {
        EXPECT_EQ(cell.of[barrier.k & 1], barrier.k);
      }
    }
    last_[node * kLocals + local] = barrier.k;
    ++left_;
    while (left_ < cells_.size()) {  // other nodes may still send messages to this node's leader
      listen(barrier, node);
    }
    gba_ompi_barrier_end(&barrier);
    gba_barrier_port_close(port);
  }

  void listen(gba_ompi_barrier_t& barrier, std::size_t node) {
    if (barrier.local == 0) {
      inboxes_[node].empty_into(barrier);
      gba_ompi_barrier_progress(&barrier);
    }
    std::this_thread::yield();
  }

  void finish(gba_ompi_barrier_t& barrier, std::size_t node) {
    for (int looks = 0; gba_ompi_barrier_test(&barrier) != 0; ++looks) {
      listen(barrier, node);
      if (looks % 64 == 63 && gba_ompi_barrier_sleep(&barrier, 1000) == 0) {
        return;
      }
    }
  }

  std::uint64_t barriers_;
  std::vector<gba_ompi_board_t> boards_;
  std::vector<Inbox> inboxes_;
  std::vector<Cell> cells_;
  std::vector<std::uint64_t> last_;
  std::atomic<std::size_t> left_{0};
  gba_device* owner_ = nullptr;
  gba_group_handle handle_{};
};

void run_jobs(std::size_t nodes) {
  fake_gba::power_on(32);
  constexpr std::uint64_t kBarriers = 100;
  EXPECT_EQ(Job(nodes, kBarriers).run(), kBefore + kBarriers);
  EXPECT_EQ(fake_gba::releases(), kBarriers);
  const int jobs = test_support::repeats(50, 2'000);
  int over = 0;
  for (int i = 0; i < jobs; ++i) {
    fake_gba::power_on(32);
    fake_gba::lose_members(60);
    over += Job(nodes, kBarriers).run() < kBefore + kBarriers ? 1 : 0;
    EXPECT_EQ(fake_gba::violation(), "");
  }
  EXPECT_GT(over, jobs / 2);
}

TEST(OpenMpiBarrierOfThreads, OrdersMemoryOnOneNode) {
  run_jobs(1);
}

TEST(OpenMpiBarrierOfThreads, OrdersMemoryOnTwoNodes) {
  run_jobs(2);
}

}  // namespace
