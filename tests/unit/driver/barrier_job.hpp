// SPDX-License-Identifier: Apache-2.0
// The members of a barrier as threads of a test, in each of the shapes that a barrier supports, over a switch that
// fails when the test says so (fake_gba.hpp).
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gba/barrier.h"

namespace barrier_test {

enum class Shape {
  kMemory,   // words in shared memory
  kNetwork,  // words are read by messages, alarms are set by messages
  kShared,   // in shared memory, two members behind each port, and an alarm word for all
};

struct DestroyBarrier {
  void operator()(gba_barrier* barrier) const { gba_barrier_destroy(barrier); }
};
using BarrierPtr = std::unique_ptr<gba_barrier, DestroyBarrier>;

struct ClosePort {
  void operator()(gba_barrier_port* port) const { gba_barrier_port_close(port); }
};
using PortPtr = std::unique_ptr<gba_barrier_port, ClosePort>;

class Job;

/// One member, used by its thread.
class Member {
 public:
  Member(Job& job, std::uint32_t me);

  /// Agrees on a group with the others. False for all members if one could not join.
  bool agree(std::uint64_t sequence);
  /// Runs barrier k, checks that all members have entered it before this one leaves, and returns its result.
  int barrier(std::uint64_t k);
  /// The same with gba_barrier_test() instead of gba_barrier_wait().
  int barrier_by_polling(std::uint64_t k);
  void give_back();

  [[nodiscard]] gba_barrier* barrier() const { return barrier_.get(); }
  /// Null if another member holds it.
  [[nodiscard]] gba_barrier_port* port() const { return port_.get(); }
  [[nodiscard]] bool uses_device() const { return gba_barrier_uses_device(barrier()) != 0; }
  [[nodiscard]] gba_barrier_status status() const;
  [[nodiscard]] std::uint32_t me() const { return me_; }
  Job& job() { return job_; }

 private:
  void enter(std::uint64_t k);
  void check_all_entered(std::uint64_t k);
  static int read(void* context, std::uint32_t member, std::uint64_t k, std::uint64_t* word);
  static int raise(void* context, std::uint64_t k);

  Job& job_;
  const std::uint32_t me_;
  const std::uint32_t sharer_;
  PortPtr port_;
  BarrierPtr barrier_;
};

/// State that the members share.
class Job {
 public:
  /// With `recovers`, a lost device is used again once it is back.
  Job(Shape shape, std::uint32_t size, bool recovers, std::uint64_t retry_ns = 1'000'000);
  /// Runs `body` for each member in a thread of its own.
  void run(const std::function<void(Member&)>& body);
  /// A barrier of the test's own.
  void sync() { sync_.arrive_and_wait(); }

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] int early() const { return early_; }
  /// Sums over all members, after run().
  [[nodiscard]] std::uint64_t by_device() const { return by_device_; }
  [[nodiscard]] std::uint64_t in_software() const { return in_software_; }
  /// From now on no other member can read this member's word.
  void lose_member(std::uint32_t member) { lost_ = static_cast<int>(member); }

 private:
  friend class Member;
  struct alignas(64) Memory {
    std::uint64_t word[2] = {};
    std::uint64_t alarm = 0;
    std::uint64_t released = 0;
    std::atomic<std::uint64_t> entered{0};
    std::atomic<int> joined{0};
  };

  const Shape shape_;
  const std::uint32_t size_;
  const bool recovers_;
  const std::uint64_t retry_ns_;
  std::vector<Memory> members_;
  std::uint64_t alarm_ = 0;
  gba_group_handle offer_{};
  std::barrier<> sync_;
  std::atomic<int> early_{0};
  std::atomic<int> lost_{-1};
  std::atomic<std::uint64_t> by_device_{0}, in_software_{0};
};

}  // namespace barrier_test
