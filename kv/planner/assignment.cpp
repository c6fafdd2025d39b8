// SPDX-License-Identifier: Apache-2.0
#include "kv/planner/assignment.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>

namespace shmem::kv {
namespace {

/// The most tokens that one PE sends in a plan of pairs.
constexpr std::int64_t kMostMoved = 32768;

/// A block that most PEs have does not help to choose a receiver.
constexpr int kMostHolders = 16;
/// A hash usually stands for all earlier blocks of its sequence as well: after so many misses in a row hardly any hit
/// follows.
constexpr int kMostMisses = 16;
/// Each round leaves less for the next one. A fourth one is rare.
constexpr int kMostRounds = 8;

/// The share `tolerance` of `tokens`. Computed in millionths, so that all PEs get the same.
std::int64_t share_of(double tolerance, std::int64_t tokens) {
  constexpr std::int64_t kMillion = 1'000'000;
  const std::int64_t millionths = std::llround(tolerance * double{kMillion});
  return tokens / kMillion * millionths + tokens % kMillion * millionths / kMillion;
}

std::size_t count_hashes(std::span<const Sequence> sequences) {
  std::size_t count = 0;
  for (const Sequence& sequence : sequences) {
    count += sequence.hashes.size();
  }
  return count;
}

std::int64_t sum(const std::vector<std::int64_t>& tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

/// Position s of the PEs in ascending order of tokens is paired with position n - 1 - s. If their number is odd, the
/// one in the middle is paired with itself.
std::vector<std::size_t> partners_of(const std::vector<std::int64_t>& tokens) {
  std::vector<std::size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return tokens[a] < tokens[b]; });
  std::vector<std::size_t> partner(tokens.size());
  for (std::size_t s = 0; s < order.size(); ++s) {
    partner[order[s]] = order[order.size() - 1 - s];
  }
  return partner;
}

/// Takes whole sequences that are less than the rest of `budget`. Empty sequences have blocks but no tokens; if only
/// these fit, nothing is sent.
void take_sequences(const std::vector<std::int64_t>& sequences, std::int64_t budget, PairChoice& choice) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (budget > sequences[i]) {
      budget -= sequences[i];
      choice.taken.push_back(i);
      choice.sends = choice.sends || sequences[i] > 0;
    }
  }
}

}  // namespace

std::vector<PairChoice> choose_pairs(const Lengths& lengths) {
  std::vector<std::int64_t> tokens;
  for (const auto& sequences : lengths) {
    tokens.push_back(sum(sequences));
  }
  const std::int64_t mean = sum(tokens) / static_cast<std::int64_t>(tokens.size());
  const std::vector<std::size_t> partner = partners_of(tokens);
  std::vector<PairChoice> choices(lengths.size());
  for (std::size_t pe = 0; pe < choices.size(); ++pe) {
    choices[pe].partner = partner[pe];
    const std::int64_t above = tokens[pe] - mean;
    const std::int64_t below = mean - tokens[partner[pe]];
    if (above > 0 && below > 0) {
      take_sequences(lengths[pe], std::min({above, below, kMostMoved}), choices[pe]);
    }
  }
  return choices;
}

Assignment::Assignment(std::span<const Sequence> sequences, const Holdings& holdings, const Planning& planning,
                       const BlockIndex& held)
    : sequences_(sequences),
      held_(held),
      unit_(holdings.unit()),
      page_(planning.geometry.page),
      // A share of the mean; all amounts here are multiplied by the unit.
      tolerance_(share_of(planning.tolerance, holdings.all_tokens()) * unit_ / planning.pes),
      candidates_(static_cast<std::size_t>(planning.pes)),
      promised_(sequences.size()),
      coming_(count_hashes(sequences)),
      shared_(static_cast<std::size_t>(planning.pes)) {
  for (const Sequence& sequence : sequences) {
    to_.push_back(sequence.pe);
  }
  for (std::size_t pe = 0; pe < candidates_.size(); ++pe) {
    above_.push_back(holdings.above(pe));
    free_.push_back(planning.room.empty()
                        ? planning.geometry.blocks - static_cast<std::int64_t>(holdings.used(pe).size())
                        : planning.room[pe]);
    if (above_[pe] < 0) {
      below_.emplace(-above_[pe], pe);
    }
  }
  list_candidates(holdings, planning);
}

void Assignment::list_candidates(const Holdings& holdings, const Planning& planning) {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const std::size_t pe = pe_of(i);
    const bool stays = sequences_[i].tokens == 0 || (planning.mode == Mode::kMove && holdings.shares(i));
    if (!stays && weight(i) <= above_[pe]) {
      candidates_[pe].push_back(i);
      longest_first_.push_back(i);
    }
  }
  const auto longer = [&](std::size_t a, std::size_t b) { return sequences_[a].tokens > sequences_[b].tokens; };
  std::stable_sort(longest_first_.begin(), longest_first_.end(), longer);
  for (auto& of_pe : candidates_) {
    std::stable_sort(of_pe.begin(), of_pe.end(), longer);
  }
}

std::optional<std::int64_t> Assignment::least_gap(std::size_t sequence, std::int64_t past) const {
  const std::int64_t excess = above_[pe_of(sequence)];
  if (weight(sequence) > excess || (past > 0 && excess <= tolerance_)) {
    return std::nullopt;
  }
  // A sequence does not move between two PEs within the tolerance.
  return excess > tolerance_ ? weight(sequence) - past : std::max(weight(sequence), tolerance_ + 1);
}

void Assignment::count_shared(std::size_t sequence, std::int64_t least) {
  for (const std::size_t pe : sharers_) {
    shared_[pe] = {};
  }
  sharers_.clear();
  int misses = 0;
  for (const std::uint64_t hash : sequences_[sequence].hashes) {
    misses = count_holders(hash, least) ? 0 : misses + 1;
    if (misses == kMostMisses) {
      return;
    }
  }
}

bool Assignment::count_holders(std::uint64_t hash, std::int64_t least) {
  bool any = false;
  for (const BlockIndex* index : {&held_, static_cast<const BlockIndex*>(&coming_)}) {
    int holders = 0;
    index->for_each_holder(hash, [&](std::int64_t holder) {
      const auto pe = static_cast<std::size_t>(holder);
      if (-above_[pe] >= least) {
        if (shared_[pe].held + shared_[pe].coming == 0) {
          sharers_.push_back(pe);
        }
        ++(index == &held_ ? shared_[pe].held : shared_[pe].coming);
        ++holders;
      }
      return holders < kMostHolders;
    });
    any = any || holders > 0;
  }
  return any;
}

bool Assignment::has_room(std::size_t sequence, std::size_t pe) const {
  // Blocks that come with other sequences do not count: these may still be taken back.
  return static_cast<std::int64_t>(sequences_[sequence].blocks.size() - shared_[pe].held) <= free_[pe];
}

std::optional<std::size_t> Assignment::best_sharer(std::size_t sequence) const {
  std::optional<std::size_t> best;
  const auto better = [&](std::size_t a, std::size_t b) {
    const std::size_t shared_by_a = shared_[a].held + shared_[a].coming;
    const std::size_t shared_by_b = shared_[b].held + shared_[b].coming;
    return std::tuple(shared_by_b, -above_[a], a) < std::tuple(shared_by_a, -above_[b], b);
  };
  for (const std::size_t pe : sharers_) {
    if (has_room(sequence, pe) && (!best || better(pe, *best))) {
      best = pe;
    }
  }
  return best;
}

std::optional<std::size_t> Assignment::best_fit(std::size_t sequence, std::int64_t least) const {
  for (auto at = below_.lower_bound({least, 0}); at != below_.end(); ++at) {
    if (has_room(sequence, at->second)) {
      return at->second;
    }
  }
  return std::nullopt;
}

void Assignment::add_tokens(std::size_t pe, std::int64_t weight) {
  below_.erase({-above_[pe], pe});
  above_[pe] += weight;
  below_.emplace(-above_[pe], pe);
}

std::int64_t Assignment::held_by(std::size_t pe, std::size_t sequence) const {
  const auto has = [&](std::uint64_t hash) { return held_.find(hash, static_cast<std::int64_t>(pe)).has_value(); };
  return std::count_if(sequences_[sequence].hashes.begin(), sequences_[sequence].hashes.end(), has);
}

void Assignment::move(std::size_t sequence, std::size_t pe) {
  to_[sequence] = static_cast<std::int64_t>(pe);
  promised_[sequence] = static_cast<std::int64_t>(sequences_[sequence].blocks.size()) - held_by(pe, sequence);
  free_[pe] -= promised_[sequence];
  above_[pe_of(sequence)] -= weight(sequence);
  add_tokens(pe, weight(sequence));
  for (const std::uint64_t hash : sequences_[sequence].hashes) {
    if (!held_.find(hash, to_[sequence])) {
      coming_.add(hash, to_[sequence], 0);
    }
  }
}

void Assignment::take_back(std::size_t sequence) {
  const auto pe = static_cast<std::size_t>(to_[sequence]);
  free_[pe] += promised_[sequence];
  above_[pe_of(sequence)] += weight(sequence);
  add_tokens(pe, -weight(sequence));
  to_[sequence] = sequences_[sequence].pe;
}

void Assignment::send_what_fits(std::int64_t past) {
  for (const std::size_t sequence : longest_first_) {
    const auto least = moved(sequence) ? std::nullopt : least_gap(sequence, past);
    if (!least) {
      continue;
    }
    count_shared(sequence, *least);
    const auto sharer = best_sharer(sequence);
    if (const auto pe = sharer ? sharer : best_fit(sequence, *least)) {
      move(sequence, *pe);
    }
  }
}

std::optional<Assignment::Two> Assignment::find_two(std::size_t pe, std::int64_t least, std::int64_t most) const {
  std::vector<std::size_t> staying;
  std::copy_if(candidates_[pe].begin(), candidates_[pe].end(), std::back_inserter(staying),
               [&](std::size_t sequence) { return !moved(sequence); });
  std::optional<Two> best;
  // From the longest down and from the shortest up, until they meet.
  for (std::size_t longer = 0, shorter = staying.size(); longer + 1 < shorter;) {
    const std::int64_t sum = weight(staying[longer]) + weight(staying[shorter - 1]);
    if (sum > most) {
      ++longer;
      continue;
    }
    if (sum >= least) {
      least = sum + 1;
      best = {staying[longer], staying[shorter - 1]};
    }
    --shorter;
  }
  return best;
}

bool Assignment::pays(std::size_t sequence, const Two& two) const {
  const auto pe = static_cast<std::size_t>(to_[sequence]);
  std::int64_t room = free_[pe] + promised_[sequence];
  std::int64_t sent = 0;
  std::int64_t tokens = 0;
  for (const std::size_t other : {two.first, two.second}) {
    const std::int64_t held = held_by(pe, other);
    room -= static_cast<std::int64_t>(sequences_[other].blocks.size()) - held;
    sent += static_cast<std::int64_t>(filled_blocks(sequences_[other], page_)) - held;
    tokens += sequences_[other].tokens;
  }
  sent -= static_cast<std::int64_t>(filled_blocks(sequences_[sequence], page_)) - held_by(pe, sequence);
  return room >= 0 && sent <= pages_of(tokens - sequences_[sequence].tokens, page_) + 1;
}

bool Assignment::send_two_for(std::size_t sequence) {
  const auto receiver = static_cast<std::size_t>(to_[sequence]);
  const std::int64_t above = above_[pe_of(sequence)];
  const std::int64_t below = -above_[receiver];
  if (std::min(above, below) <= 0 || std::max(above, below) <= tolerance_) {
    return false;
  }
  const auto two = find_two(pe_of(sequence), weight(sequence) + 1, weight(sequence) + std::min(above, below));
  if (!two || !pays(sequence, *two)) {
    return false;
  }
  take_back(sequence);
  move(two->first, receiver);
  move(two->second, receiver);
  return true;
}

bool Assignment::send_two_for_one() {
  bool any = false;
  for (const std::size_t sequence : longest_first_) {
    any = (moved(sequence) && send_two_for(sequence)) || any;
  }
  return any;
}

std::vector<std::int64_t> Assignment::run() && {
  send_what_fits(0);
  for (int round = 0; round < kMostRounds && send_two_for_one(); ++round) {
    send_what_fits(0);
  }
  if (tolerance_ > 0) {
    send_what_fits(tolerance_);
  }
  return std::move(to_);
}

}  // namespace shmem::kv
