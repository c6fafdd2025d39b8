// SPDX-License-Identifier: Apache-2.0
#include "shmem/offload/gba_switches.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace shmem {
namespace {

// After a loss. A try whose answer is no costs the leaders one more exchange of messages. So it may be as rare as one
// in kMostBarriers where barriers are fast, and is about kTryEach apart where they are slow.
constexpr std::chrono::milliseconds kTryEach{50};
constexpr std::uint32_t kMostBarriers = 64;
// A group that could not be had, or that served fewer barriers: the next one is taken later.
constexpr std::uint64_t kFewBarriers = 512;
constexpr std::chrono::milliseconds kLongestBackOff{800};

}  // namespace

/// The outcome for a leader's block.
struct GbaSwitches::Outcome {
  std::uint32_t active, alone;
  std::array<char, 240> reason;
};

std::vector<int> blocks_of(const std::vector<GbaHome>& homes) {
  const auto name = [](const GbaHome& home) { return std::string(home.switch_name.data()); };
  struct Open {
    std::uint32_t most = UINT32_MAX;  // the least size of a group that its leaders report
    std::uint32_t size = 0;           // of its last block
    int block = -1;
  };
  std::map<std::string, Open> switches;
  for (const GbaHome& home : homes) {
    Open& open = switches[name(home)];
    if (home.most != 0) {
      open.most = std::min(open.most, home.most);
    }
  }
  std::vector<int> blocks;
  int number = 0;
  for (const GbaHome& home : homes) {
    Open& open = switches[name(home)];
    if (open.block < 0 || open.size == open.most) {
      open.block = number++;
      open.size = 0;
    }
    ++open.size;
    blocks.push_back(open.block);
  }
  return blocks;
}

GbaSwitches::GbaSwitches(const InterNodeBarrier::Means& means, const std::string& switch_name, Ids ids)
    : means_(means), switch_name_(switch_name), ids_(ids) {}

GbaHome GbaSwitches::home(const GbaMember& member) const {
  GbaHome home;
  switch_name_.copy(home.switch_name.data(), home.switch_name.size() - 1);
  if (member.port != nullptr) {
    const auto info = member.port->info();
    home.most = info ? info->members : 0;
  }
  return home;
}

void GbaSwitches::form_blocks(const std::vector<GbaHome>& homes) {
  const std::vector<int> block_of = blocks_of(homes);
  const auto me = static_cast<std::size_t>(means_.leaders.me());
  std::vector<int> firsts;
  device_.reset();
  block_.reset();
  firsts_.reset();
  pes_.clear();
  for (std::size_t leader = 0; leader < block_of.size(); ++leader) {
    const int pe = means_.pes[leader];
    if (block_of[leader] == static_cast<int>(firsts.size())) {
      firsts.push_back(pe);
    }
    if (block_of[leader] != block_of[me]) {
      continue;
    }
    if (leader == me) {
      place_ = size();
    }
    pes_.push_back(pe);
  }
  blocks_ = static_cast<int>(firsts.size());
  if (blocks_ > 1) {
    block_.emplace(means_.network, pes_, place_, ids_.block);
    block_->set_barrier(means_.leaders.barrier_choice());
    if (first_of_block()) {
      firsts_.emplace(means_.network, firsts, block_of[me], ids_.firsts);
      firsts_->set_barrier(means_.leaders.barrier_choice());
    }
  }
  if (size() > 1) {
    device_.emplace(InterNodeBarrier::Means{.job = means_.job,
                                            .network = means_.network,
                                            .leaders = block(),
                                            .pes = pes_,
                                            .board = means_.board,
                                            .slot = means_.slot,
                                            .policy = means_.policy,
                                            .interrupted = means_.interrupted,
                                            .name = means_.name});
  }
}

Result<void> GbaSwitches::join(const GbaMember& member) {
  used_ = by_device_ = false;
  const auto homes = means_.leaders.allgather(home(member));
  if (!homes) {
    return homes.error();
  }
  form_blocks(*homes);
  if (device_) {
    if (auto ok = device_->join(member); !ok) {
      return ok;
    }
  }
  member_ = member;
  member_->retry = {};  // after a loss, no barrier waits for the device
  served_ = lasted_ = 0;
  pause_ = next_try_ = 1;
  back_off_ = kFirstBackOff;
  not_before_ = {};
  return agree();
}

Result<void> GbaSwitches::agree() {
  Outcome mine{.active = device_ && device_->active(), .alone = !device_, .reason = {}};
  if (device_) {
    device_->reason().copy(mine.reason.data(), mine.reason.size() - 1);
  }
  const auto outcomes = blocks_ > 1 ? means_.leaders.allgather(mine) : Result<std::vector<Outcome>>{{mine}};
  if (!outcomes) {
    return outcomes.error();
  }
  bool any = false;
  reason_.clear();
  for (const Outcome& theirs : *outcomes) {
    any = any || theirs.active != 0;
    if (theirs.active == 0 && theirs.alone == 0 && reason_.empty()) {
      reason_ = theirs.reason.data();
    }
  }
  if (!any && reason_.empty()) {
    reason_ = "each of its nodes is on a different switch (SHMEM_GBA_SWITCH)";
  }
  used_ = reason_.empty();
  return used_ || !device_ ? Result<void>{} : device_->dissolve();
}

Result<void> GbaSwitches::arrive_and_wait() {
  by_device_ = used_;
  if (!used_) {
    return means_.leaders.barrier();
  }
  lasted_ += device_ && device_->active() ? 1 : 0;
  auto ok = block_barrier();
  if (blocks_ > 1) {
    if (ok && firsts_) {
      ok = firsts_->barrier();
    }
    if (ok) {
      ok = block_barrier();
    }
  }
  served_ += ok && by_device_ ? 1 : 0;
  return ok && device_ && !device_->active() ? try_again() : ok;
}

Result<void> GbaSwitches::block_barrier() {
  if (!device_ || !device_->active()) {
    by_device_ = false;
    return device_ ? block().barrier() : Result<void>{};
  }
  auto ok = device_->arrive_and_wait();
  by_device_ = by_device_ && device_->by_device();
  return ok;
}

std::uint32_t GbaSwitches::next_pause() {
  const auto now = Clock::now();
  const std::chrono::nanoseconds taken = now - std::exchange(last_try_, now);
  const auto fits = pause_ * std::chrono::nanoseconds{kTryEach} / std::max(taken, std::chrono::nanoseconds{1});
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(fits, 1, kMostBarriers));
}

void GbaSwitches::back_off() {
  not_before_ = Clock::now() + back_off_;
  back_off_ = std::min(2 * back_off_, kLongestBackOff);
}

/// All leaders of the block call this after the same barriers and count alike: by whether the group existed, not by
/// which leaders it released.
Result<void> GbaSwitches::try_again() {
  if (lasted_ != 0) {  // just lost
    if (std::exchange(lasted_, 0) >= kFewBarriers) {
      back_off_ = kFirstBackOff;
    } else {
      back_off();
    }
    pause_ = next_try_ = 1;
    last_try_ = Clock::now();
    return {};
  }
  if (--next_try_ != 0) {
    return {};
  }
  InterNodeBarrier::Retry retry{.due = place_ != 0 || Clock::now() >= not_before_, .pause = next_pause()};
  if (auto ok = device_->join(*member_, retry); !ok) {
    return ok;
  }
  pause_ = next_try_ = retry.pause;
  if (retry.tried && !device_->active()) {
    back_off();
  }
  return {};
}

Result<void> GbaSwitches::dissolve() {
  by_device_ = false;
  if (!std::exchange(used_, false) || !device_) {
    return {};
  }
  return device_->dissolve();
}

}  // namespace shmem
