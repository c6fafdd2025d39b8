// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/spanning_survivors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shmem/layout/peers.hpp"
#include "shmem/net/shrink_tags.hpp"

namespace shmem {
namespace {

/// The interval in which a waiter looks for processes on its node that have ended.
constexpr std::chrono::milliseconds kEndLook{20};
constexpr int kShrinkSpins = 200;
constexpr std::chrono::microseconds kShrinkNap{500};
/// A member in its turn may have begun later than this one, by its limit, and has the network's delays.
constexpr std::chrono::seconds kTurnMargin{1};

std::size_t words_of_proposal(int members) {
  return 1 + (static_cast<std::size_t>(members) + 63) / 64;
}

void set_member(std::vector<std::uint64_t>& words, int member) {
  words[1 + static_cast<std::size_t>(member) / 64] |= std::uint64_t{1} << (member % 64);
}

bool has_member(const std::vector<std::uint64_t>& words, int member) {
  return (words[1 + static_cast<std::size_t>(member) / 64] >> (member % 64) & 1) != 0;
}

}  // namespace

SpanningSurvivors::Shrink::Shrink(Network& network, const TeamMap& world, std::uint32_t team, std::uint64_t number)
    : begun(network, world, shrink_tag(team, number, ShrinkStep::kBegun), words_of_proposal(world.size)),
      proposals(network, world, shrink_tag(team, number, ShrinkStep::kProposal), words_of_proposal(world.size)),
      failures(network, world, shrink_tag(team, 0, ShrinkStep::kFailure), 1) {}

void SpanningSurvivors::look_for_deaths() {
  for (int i = 0; i < world_.size; ++i) {
    const int here = job_.nodes.number(world_.pe(i));
    if (i != me_ && here >= 0 && !is_gone(i) && is_dead_or_zombie(job_, here)) {
      gone_[static_cast<std::size_t>(i)] = true;
    }
  }
}

void SpanningSurvivors::tell_of_failure() {
  if (failure_) {
    return;
  }
  failure_.emplace(*job_.network, world_, shrink_tag(team_, 0, ShrinkStep::kFailure), 1);
  for (int i = 0; i < world_.size; ++i) {
    if (job_.nodes.number(world_.pe(i)) < 0 && !job_.network->has_lost(world_.pe(i))) {
      failure_->send(i);
    }
  }
}

template <typename Done>
std::errc SpanningSurvivors::wait(std::chrono::milliseconds limit, Done done) {
  const auto deadline = Clock::now() + limit;
  auto next_look = Clock::now();
  for (int turn = 0;; ++turn) {
    job_.network->advance();
    shrink_->begun.look();
    shrink_->proposals.look();
    for (int i = 0; i < world_.size; ++i) {
      if (shrink_->begun.is_lost(i) || shrink_->proposals.is_lost(i)) {
        gone_[static_cast<std::size_t>(i)] = true;
      }
    }
    const auto now = Clock::now();
    if (now >= next_look) {
      next_look = now + kEndLook;
      look_for_deaths();
    }
    if (done()) {
      return {};
    }
    if (const std::errc error = job_.ended(); error != std::errc{}) {
      return error;
    }
    if (now >= deadline) {
      return std::errc::timed_out;
    }
    if (turn >= kShrinkSpins) {
      job_.network->sleep(kShrinkNap);
    }
  }
}

void SpanningSurvivors::tell_of_begin() {
  for (int i = 0; i < world_.size; ++i) {
    gone_[static_cast<std::size_t>(i)] = has_left_out(i) || (i != me_ && job_.network->has_lost(world_.pe(i)));
  }
  look_for_deaths();
  for (int i = 0; i < world_.size; ++i) {
    if (is_gone(i)) {
      set_member(shrink_->begun.mine(), i);
    } else if (i != me_) {
      shrink_->begun.expect(i);
      shrink_->failures.expect(i);
      shrink_->proposals.expect(i);
    }
  }
  for (int i = 0; i < world_.size; ++i) {
    if (i != me_ && !is_gone(i)) {
      shrink_->begun.send(i);
    }
  }
}

Result<void> SpanningSurvivors::wait_for_others() {
  const auto is_late = [this](int i) { return i != me_ && !is_gone(i) && !shrink_->begun.has_come(i); };
  const std::errc error = wait(limit(), [&] {
    bool all = true;
    for (int i = 0; all && i < world_.size; ++i) {
      all = !is_late(i);
    }
    return all || shrink_->proposals.first_that_has_come();
  });
  if (error != std::errc::timed_out) {
    return error == std::errc{} ? Result<void>{} : given_up(error);
  }
  std::string late;
  for (int i = 0; i < world_.size; ++i) {
    if (is_late(i)) {
      late += fmt::format("{}PE {} (on {})", late.empty() ? "" : ", ", world_.pe(i), job_.nodes.host(world_.pe(i)));
      gone_[static_cast<std::size_t>(i)] = true;
    }
  }
  warn_of_late(late);
  return {};
}

bool SpanningSurvivors::has_lost(int member, int other) const {
  return member == me_ ? is_gone(other) : has_member(shrink_->begun.from(member), other);
}

SpanningSurvivors::Proposal SpanningSurvivors::propose(std::uint32_t id) const {
  if (const auto other = shrink_->proposals.first_that_has_come()) {
    return shrink_->proposals.from(*other);
  }
  Proposal proposal(words_of_proposal(world_.size));
  proposal[0] = id;
  const auto is_here = [this](int i) { return i == me_ || (shrink_->begun.has_come(i) && !is_gone(i)); };
  const auto is_out = [&](int i) {
    for (int other = 0; other < world_.size; ++other) {
      if (is_here(other) && has_lost(other, i) && (!has_lost(i, other) || has_member(proposal, other))) {
        return true;
      }
    }
    return false;
  };
  for (int i = 0; i < world_.size; ++i) {
    if (is_here(i) && !is_out(i)) {
      set_member(proposal, i);
    }
  }
  return proposal;
}

Result<void> SpanningSurvivors::take_turn(int member, Proposal& proposal) {
  ShrinkMessages& all = shrink_->proposals;
  if (member == me_) {
    all.mine() = proposal;
    for (int i = 0; i < world_.size; ++i) {
      // To one that is late, too: it learns that it was left out.
      if (i != me_ && !all.is_lost(i) && !shrink_->begun.is_lost(i) && !has_left_out(i)) {
        all.send(i);
      }
    }
    return {};
  }
  if (!all.has_come(member) && !is_gone(member)) {
    const std::errc error = wait(limit() + kTurnMargin, [&] { return all.has_come(member) || is_gone(member); });
    if (error != std::errc{} && error != std::errc::timed_out) {
      return given_up(error);
    }
    gone_[static_cast<std::size_t>(member)] = is_gone(member) || error == std::errc::timed_out;
  }
  if (all.has_come(member)) {
    proposal = all.from(member);
  }
  return {};
}

void SpanningSurvivors::finish_sending(const Proposal& proposal) {
  // Either way this member has what the others get.
  static_cast<void>(wait(limit(), [&] {
    for (int i = 0; i < world_.size; ++i) {
      if (has_member(proposal, i) && shrink_->proposals.is_sending(i)) {
        return false;
      }
    }
    return true;
  }));
}

Result<WhoIsLeft> SpanningSurvivors::agree(std::uint32_t id) {
  if (was_left_out(view_, view_.me())) {
    return left_out();
  }
  begin();
  shrink_ = std::make_unique<Shrink>(*job_.network, world_, team_, number_);
  tell_of_begin();
  if (auto ok = wait_for_others(); !ok) {
    return ok.error();
  }
  Proposal proposal = propose(id);
  for (int member = 0; member < world_.size; ++member) {
    if (auto ok = take_turn(member, proposal); !ok) {
      return ok.error();
    }
  }
  finish_sending(proposal);
  // A member that has told of a failure has done so before it began: its message has come.
  shrink_->failures.look();
  shrink_->failures.stop_expecting();
  shrink_->begun.stop_expecting();
  shrink_->proposals.stop_expecting();
  WhoIsLeft left{{}, static_cast<std::uint32_t>(proposal[0])};
  for (int i = 0; i < world_.size; ++i) {
    if (has_member(proposal, i)) {
      left.members.push_back(i);
    } else if (i != me_) {
      job_.network->leave_out(world_.pe(i));
    }
  }
  keep(left.members);
  if (has_left_out(me_)) {
    // Relaxed: only this member and messages read it.
    words(view_.me()).verdict.store(2 * number_, std::memory_order_relaxed);
    return left_out();
  }
  return left;
}

}  // namespace shmem
