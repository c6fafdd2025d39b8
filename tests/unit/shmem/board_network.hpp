// SPDX-License-Identifier: Apache-2.0
// A network between threads of the test that also reaches their boards (RemoteBoard).
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "shmem/layout/remote_board.hpp"
#include "tests/unit/shmem/thread_network.hpp"

namespace shmem_test {

/// Adds atomic operations on the boards of all PEs. Posted operations take effect late, at the next quiet().
class BoardNetwork : public ThreadNetwork {
 public:
  BoardNetwork(Wires& wires, int me, std::deque<shmem::RemoteBoard>& boards)
      : ThreadNetwork(wires, me, std::chrono::seconds{20}), boards_(boards) {}

  shmem::Result<std::uint64_t> fetch_atomic(const shmem::RemotePlace& place, std::size_t size,
                                            shmem::AtomicOperation operation, std::uint64_t /*operand*/,
                                            std::uint64_t /*compared*/) override {
    EXPECT_TRUE(size == 8 && operation == shmem::AtomicOperation::kFetch && place.segment == shmem::Segment::kBoard);
    return std::atomic_ref(at(place)).load(std::memory_order_acquire);
  }
  shmem::Result<void> post_atomic(const shmem::RemotePlace& place, std::size_t size, shmem::AtomicOperation operation,
                                  std::uint64_t operand) override {
    EXPECT_TRUE(size == 8 && operation == shmem::AtomicOperation::kSet && place.segment == shmem::Segment::kBoard);
    posted_.emplace_back(place, operand);
    return {};
  }
  shmem::Result<void> quiet(shmem::PeChoice /*pes*/) override {
    for (const auto& [place, value] : posted_) {
      std::this_thread::sleep_for(std::chrono::microseconds{20});
      std::atomic_ref(at(place)).store(value, std::memory_order_release);
    }
    posted_.clear();
    return {};
  }

 private:
  std::uint64_t& at(const shmem::RemotePlace& place) {
    auto* const bytes = reinterpret_cast<std::byte*>(&boards_[static_cast<std::size_t>(place.pe)]);
    return *reinterpret_cast<std::uint64_t*>(bytes + place.offset);
  }

  std::deque<shmem::RemoteBoard>& boards_;
  std::vector<std::pair<shmem::RemotePlace, std::uint64_t>> posted_;
};

}  // namespace shmem_test
