// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_switches.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace shmem {
namespace {

// After a loss, in barriers: the next try, and then twice as many, up to the last of these.
constexpr std::uint64_t kFirstTry = 512;
constexpr std::uint64_t kLongestPatience = 64 * kFirstTry;

}  // namespace

/// What came of a leader's block.
struct GbaSwitches::Outcome {
  std::uint32_t active, alone;
  std::array<char, 240> reason;
};

std::vector<int> blocks_of(const std::vector<GbaHome>& homes) {
  const auto name = [](const GbaHome& home) { return std::string(home.switch_name.data()); };
  struct Open {
    std::uint32_t most = UINT32_MAX;  // the least that any of its leaders says
    std::uint32_t size = 0;           // of its last block
    int block = -1;
  };
  std::map<std::string, Open> switches;
  for (const GbaHome& home : homes) {
    Open& open = switches[name(home)];
    if (home.most != 0) open.most = std::min(open.most, home.most);
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

GbaSwitches::GbaSwitches(const GbaSpan::Means& means, const std::string& switch_name, Numbers numbers)
    : means_(means), switch_name_(switch_name), numbers_(numbers) {}

GbaHome GbaSwitches::home(const GbaMember& member) const {
  GbaHome home;
  switch_name_.copy(home.switch_name.data(), home.switch_name.size() - 1);
  const GbaDevice device = member.port != nullptr ? member.port->well() : nullptr;
  gba_device_info info{};
  if (device != nullptr && gba_device_get_info(device.get(), &info) == 0) home.most = info.members;
  return home;
}

void GbaSwitches::form_blocks(const std::vector<GbaHome>& homes) {
  const std::vector<int> block_of = blocks_of(homes);
  const auto me = static_cast<std::size_t>(means_.leaders.me());
  std::vector<int> firsts;
  span_.reset();
  block_.reset();
  firsts_.reset();
  pes_.clear();
  for (std::size_t leader = 0; leader < block_of.size(); ++leader) {
    const int pe = means_.pes[leader];
    if (block_of[leader] == static_cast<int>(firsts.size())) firsts.push_back(pe);
    if (block_of[leader] != block_of[me]) continue;
    if (leader == me) place_ = size();
    pes_.push_back(pe);
  }
  blocks_ = static_cast<int>(firsts.size());
  if (blocks_ > 1) {
    block_.emplace(means_.network, pes_, place_, numbers_.block);
    if (first_of_block()) firsts_.emplace(means_.network, firsts, block_of[me], numbers_.firsts);
  }
  if (size() > 1) {
    span_.emplace(GbaSpan::Means{.network = means_.network,
                                 .leaders = block(),
                                 .pes = pes_,
                                 .board = means_.board,
                                 .slot = means_.slot,
                                 .policy = means_.policy,
                                 .name = means_.name,
                                 .check = means_.check,
                                 .limit = means_.limit});
  }
}

Result<void> GbaSwitches::join(const GbaMember& member) {
  used_ = by_device_ = false;
  const auto homes = means_.leaders.tell_all(home(member));
  if (!homes) return tl::make_unexpected(homes.error());
  form_blocks(*homes);
  if (span_) {
    if (auto ok = span_->join(member); !ok) return ok;
  }
  member_ = member;
  member_->retry = {};  // after a loss nobody waits for it
  served_ = lasted_ = 0;
  patience_ = next_try_ = kFirstTry;
  return agree();
}

Result<void> GbaSwitches::agree() {
  Outcome mine{.active = span_ && span_->active(), .alone = !span_, .reason = {}};
  if (span_) span_->reason().copy(mine.reason.data(), mine.reason.size() - 1);
  const auto outcomes = blocks_ > 1 ? means_.leaders.tell_all(mine) : Result<std::vector<Outcome>>{{mine}};
  if (!outcomes) return tl::make_unexpected(outcomes.error());
  bool any = false;
  reason_.clear();
  for (const Outcome& theirs : *outcomes) {
    any = any || theirs.active != 0;
    if (theirs.active == 0 && theirs.alone == 0 && reason_.empty()) reason_ = theirs.reason.data();
  }
  if (!any && reason_.empty()) reason_ = "each of its nodes is on a switch of its own (SHMEM_GBA_SWITCH)";
  used_ = reason_.empty();
  return used_ || !span_ ? Result<void>{} : span_->dissolve();
}

Result<void> GbaSwitches::meet() {
  by_device_ = used_;
  if (!used_) return means_.leaders.barrier();
  lasted_ += span_ && span_->active() ? 1 : 0;
  auto ok = meet_block();
  if (blocks_ > 1) {
    if (ok && firsts_) ok = firsts_->barrier();
    if (ok) ok = meet_block();
  }
  served_ += ok && by_device_ ? 1 : 0;
  return ok && span_ && !span_->active() ? try_again() : ok;
}

Result<void> GbaSwitches::meet_block() {
  if (!span_ || !span_->active()) {
    by_device_ = false;
    return span_ ? block().barrier() : Result<void>{};
  }
  auto ok = span_->meet();
  by_device_ = by_device_ && span_->by_device();
  return ok;
}

/// All of the block come here after the same barriers, and count alike: by when the group was there, not by who was
/// released through it.
Result<void> GbaSwitches::try_again() {
  if (--next_try_ != 0) return {};
  if (auto ok = span_->join(*member_); !ok) return ok;
  // One that is lost again soon is not asked for soon.
  const bool good = std::exchange(lasted_, 0) >= kFirstTry;
  patience_ = good ? kFirstTry : std::min(2 * patience_, kLongestPatience);
  next_try_ = patience_;
  return {};
}

Result<void> GbaSwitches::dissolve() {
  by_device_ = false;
  if (!std::exchange(used_, false) || !span_) return {};
  return span_->dissolve();
}

}  // namespace shmem
