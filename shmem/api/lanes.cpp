// SPDX-License-Identifier: Apache-2.0
// Lanes: calls of one function that a thread runs in turn, each with a stack of its own, so that they can wait for each
// other.
#include <sys/mman.h>
#include <ucontext.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "shmem/api/kernel_core.hpp"
#include "shmemx_interface.h"

namespace api = shmem::api;

#if defined(__SANITIZE_THREAD__)
// The thread sanitizer must be told when a thread changes its stack.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" void* __tsan_get_current_fiber(void);
extern "C" void* __tsan_create_fiber(unsigned flags);
extern "C" void __tsan_destroy_fiber(void* fiber);
extern "C" void __tsan_switch_to_fiber(void* fiber, unsigned flags);
// NOLINTEND(bugprone-reserved-identifier)
#endif

namespace {

constexpr std::size_t kLaneStack = std::size_t{256} << 10;
constexpr int kMostLanes = 4096;

class Lanes;
thread_local Lanes* running_lanes = nullptr;

struct UnmapStacks {
  std::size_t size = 0;
  void operator()(std::byte* memory) const {
    // A lane that ends the process is still on one of them.
    if (running_lanes == nullptr) {
      ::munmap(memory, size);
    }
  }
};
using Stacks = std::unique_ptr<std::byte, UnmapStacks>;

/// Switches the thread from one stack to another, also for the thread sanitizer.
class LanePlace {
 public:
  void go_to(LanePlace& other) {
#if defined(__SANITIZE_THREAD__)
    tsan_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(other.tsan_, 0);
#endif
    ::swapcontext(&context_, &other.context_);
  }
  void start_at(std::byte* stack, void (*entry)()) {
    ::getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = kLaneStack;
    context_.uc_link = nullptr;
    ::makecontext(&context_, entry, 0);
#if defined(__SANITIZE_THREAD__)
    tsan_ = __tsan_create_fiber(0);
#endif
  }
  void end() {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(tsan_);
#endif
  }

 private:
  ucontext_t context_{};
#if defined(__SANITIZE_THREAD__)
  void* tsan_ = nullptr;
#endif
};

/// The lanes of one call of shmemx_run_lanes.
class Lanes {
 public:
  /// `stacks`: one for each.
  Lanes(int count, std::byte* stacks, shmemx_lane_t body, void* argument)
      : stacks_(stacks), lanes_(static_cast<std::size_t>(count)), body_(body), argument_(argument) {}

  void run() {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].place.start_at(stacks_ + i * kLaneStack, enter);
    }
    while (ended_ < lanes_.size()) {
      bool any = false;
      for (current_ = 0; current_ < lanes_.size(); ++current_) {
        Lane& lane = lanes_[current_];
        if (lane.state == State::kRuns) {
          any = true;
          thread_.go_to(lane.place);
        }
      }
      if (!any) {
        api::end_job(api::running("shmemx_sync_lanes"), "shmemx_sync_lanes",
                     "lanes wait for each other in groups of different sizes");
      }
    }
    for (Lane& lane : lanes_) {
      lane.place.end();
    }
  }

  [[nodiscard]] int current() const { return static_cast<int>(current_); }
  [[nodiscard]] int count() const { return static_cast<int>(lanes_.size()); }

  bool sync(int group) {
    Lane& self = lanes_[current_];
    self.waits_for = group;
    self.state = State::kWaits;
    wait_for_all_ += group == 0 ? 1 : 0;
    self.chosen = false;
    if (!release(current_, group)) {
      self.place.go_to(thread_);
    }
    return self.chosen;
  }

 private:
  enum class State { kRuns, kWaits, kEnded };
  struct Lane {
    LanePlace place;
    State state = State::kRuns;
    int waits_for = 0;
    bool chosen = false;
  };

  static void enter();

  /// If all lanes of this one's group wait or have ended, they run again, and one of them is chosen.
  bool release(std::size_t lane, int group) {
    if (group == 0 && wait_for_all_ + ended_ < lanes_.size()) {
      return false;
    }
    const std::size_t size = group > 0 ? static_cast<std::size_t>(group) : lanes_.size();
    const std::size_t first = lane / size * size;
    const std::size_t last = std::min(first + size, lanes_.size());
    for (std::size_t i = first; i < last; ++i) {
      const Lane& other = lanes_[i];
      if (other.state == State::kRuns || (other.state == State::kWaits && other.waits_for != group)) {
        return false;
      }
    }
    wait_for_all_ = group == 0 ? 0 : wait_for_all_;
    bool chosen = false;
    for (std::size_t i = first; i < last; ++i) {
      if (lanes_[i].state == State::kWaits) {
        lanes_[i].state = State::kRuns;
        lanes_[i].chosen = !chosen;
        chosen = true;
      }
    }
    return true;
  }

  void end_current() {
    lanes_[current_].state = State::kEnded;
    ++ended_;
    for (const Lane& lane : lanes_) {  // those that waited for this one
      if (lane.state == State::kWaits) {
        release(current_, lane.waits_for);
      }
    }
    lanes_[current_].place.go_to(thread_);
  }

  std::byte* const stacks_;
  std::vector<Lane> lanes_;
  const shmemx_lane_t body_;
  void* const argument_;
  LanePlace thread_;
  std::size_t current_ = 0;
  std::size_t ended_ = 0;
  std::size_t wait_for_all_ = 0;
};

/// The calling thread's, which keeps them for its next lanes; nullptr: out of memory.
std::byte* stacks_for(std::size_t size) {
  static thread_local Stacks kept;
  if (kept == nullptr || kept.get_deleter().size < size) {
    kept.reset();
    void* const memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    kept = memory != MAP_FAILED ? Stacks(static_cast<std::byte*>(memory), {size}) : Stacks();
  }
  return kept.get();
}

void Lanes::enter() {
  Lanes& lanes = *running_lanes;
  lanes.body_(lanes.argument_);
  lanes.end_current();
}

}  // namespace

extern "C" {

int shmemx_run_lanes(int lanes, shmemx_lane_t body, void* argument) noexcept try {
  if (lanes < 1 || lanes > kMostLanes || body == nullptr) {
    return api::report(
        {std::errc::invalid_argument,
         fmt::format("shmem: shmemx_run_lanes: {} lanes instead of 1 to {}, or no function", lanes, kMostLanes)});
  }
  if (running_lanes != nullptr) {
    return api::report({std::errc::device_or_resource_busy, "shmem: shmemx_run_lanes: a lane cannot run others"});
  }
  std::byte* const stacks = stacks_for(static_cast<std::size_t>(lanes) * kLaneStack);
  if (stacks == nullptr) {
    return api::report({std::errc::not_enough_memory, "shmem: shmemx_run_lanes: no memory for the lanes' stacks"});
  }
  Lanes all(lanes, stacks, body, argument);
  running_lanes = &all;
  const struct End {
    ~End() { running_lanes = nullptr; }
  } end;  // also after an error
  all.run();
  return 0;
}
SHMEM_CATCH(int)

int shmemx_lane() noexcept {
  return running_lanes != nullptr ? running_lanes->current() : 0;
}

int shmemx_lane_count() noexcept {
  return running_lanes != nullptr ? running_lanes->count() : 1;
}

int shmemx_sync_lanes(int group) noexcept try { return running_lanes == nullptr || running_lanes->sync(group) ? 1 : 0; }
SHMEM_CATCH(int)
}
