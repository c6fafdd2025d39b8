// SPDX-License-Identifier: Apache-2.0
#include "kv/operator/plan.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace shmem::kv {
namespace {

std::string name_block(std::int64_t pe, std::int64_t block) {
  return fmt::format("block {} of PE {}", block, pe);
}

std::string name_move(const Move& move) {
  return fmt::format("the move of {} to {}", name_block(move.src_pe, move.src_block),
                     name_block(move.dst_pe, move.dst_block));
}

bool in_order(const Move& a, const Move& b) {
  const auto key = [](const Move& move) { return std::tie(move.src_pe, move.dst_pe, move.src_block, move.dst_block); };
  return key(a) < key(b);
}

bool is_negative(const Move& move) {
  return move.src_pe < 0 || move.src_block < 0 || move.dst_pe < 0 || move.dst_block < 0;
}

/// All sources, or all destinations, sorted.
template <typename Block, typename Side>
std::vector<Block> blocks_of_moves(const std::vector<Move>& moves, Side side) {
  std::vector<Block> blocks;
  blocks.reserve(moves.size());
  std::transform(moves.begin(), moves.end(), std::back_inserter(blocks), side);
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

/// The PEs of sorted blocks.
template <typename Block>
int count_pes(const std::vector<Block>& some, const std::vector<Block>& others) {
  std::vector<std::int64_t> pes;
  for (const auto* blocks : {&some, &others}) {
    for (std::size_t i = 0; i < blocks->size(); ++i) {
      if (i == 0 || (*blocks)[i].pe != (*blocks)[i - 1].pe) {
        pes.push_back((*blocks)[i].pe);
      }
    }
  }
  std::sort(pes.begin(), pes.end());
  return static_cast<int>(std::unique(pes.begin(), pes.end()) - pes.begin());
}

}  // namespace

void Digest::add(const void* data, std::size_t size) {
  value_ = XXH3_64bits_withSeed(data, size, value_);
}

Result<MovePlan> MovePlan::create(std::span<const Move> moves, Mode mode) {
  if (const auto bad = std::find_if(moves.begin(), moves.end(), is_negative); bad != moves.end()) {
    return invalid(name_move(*bad) + " has a negative number");
  }
  MovePlan plan;
  plan.mode_ = mode;
  plan.moves_.assign(moves.begin(), moves.end());
  std::sort(plan.moves_.begin(), plan.moves_.end(), in_order);
  plan.moves_.erase(std::unique(plan.moves_.begin(), plan.moves_.end()), plan.moves_.end());
  const auto sources = blocks_of_moves<Block>(plan.moves_, source_of);
  const auto destinations = blocks_of_moves<Block>(plan.moves_, destination_of);
  if (const auto twice = std::adjacent_find(destinations.begin(), destinations.end()); twice != destinations.end()) {
    return invalid(name_block(twice->pe, twice->index) + " is the destination of two different blocks");
  }
  if (mode == Mode::kMove) {
    if (const auto twice = std::adjacent_find(sources.begin(), sources.end()); twice != sources.end()) {
      return invalid(name_block(twice->pe, twice->index) + " is to be moved to two places");
    }
    std::set_difference(sources.begin(), sources.end(), destinations.begin(), destinations.end(),
                        std::back_inserter(plan.cleared_));
  }
  std::erase_if(plan.moves_, [](const Move& move) { return source_of(move) == destination_of(move); });
  plan.find_staged(sources);
  plan.pes_ = count_pes(sources, destinations);
  for (const Move& move : plan.moves_) {
    plan.last_pe_ = std::max({plan.last_pe_, move.src_pe, move.dst_pe});
    plan.last_block_ = std::max({plan.last_block_, move.src_block, move.dst_block});
  }
  Digest digest;
  digest.add(static_cast<std::int64_t>(mode));
  digest.add(plan.moves_.data(), plan.moves_.size() * sizeof(Move));
  plan.digest_ = digest.value();
  return plan;
}

void MovePlan::find_staged(const std::vector<Block>& sources) {
  std::size_t of_this_pe = 0;
  staged_.resize(moves_.size());
  for (std::size_t i = 0; i < moves_.size(); ++i) {
    if (i == 0 || moves_[i].src_pe != moves_[i - 1].src_pe) {
      of_this_pe = 0;
    }
    staged_[i] = std::binary_search(sources.begin(), sources.end(), destination_of(moves_[i]));
    of_this_pe += staged_[i] ? 1 : 0;
    most_staged_ = std::max(most_staged_, of_this_pe);
  }
}

Result<void> MovePlan::check(int pes, std::size_t blocks) const {
  if (last_pe_ < pes && (last_block_ < 0 || static_cast<std::size_t>(last_block_) < blocks)) {
    return {};
  }
  const auto out_of_range = [&](std::int64_t pe, std::int64_t block) {
    return pe >= pes || static_cast<std::size_t>(block) >= blocks;
  };
  const auto bad = std::find_if(moves_.begin(), moves_.end(), [&](const Move& move) {
    return out_of_range(move.src_pe, move.src_block) || out_of_range(move.dst_pe, move.dst_block);
  });
  return invalid(
      fmt::format("{}: there are PEs 0..{}, and in their caches blocks 0..{}", name_move(*bad), pes - 1, blocks - 1));
}

std::vector<Move> MovePlan::select(int pe, bool staged) const {
  std::vector<Move> selected;
  const auto first = std::partition_point(moves_.begin(), moves_.end(), [pe](const Move& m) { return m.src_pe < pe; });
  for (auto move = first; move != moves_.end() && move->src_pe == pe; ++move) {
    if (staged_[static_cast<std::size_t>(move - moves_.begin())] == staged) {
      selected.push_back(*move);
    }
  }
  return selected;
}

std::size_t MovePlan::sent_by(int pe) const {
  const auto of_pe = std::equal_range(moves_.begin(), moves_.end(), Move{pe, 0, 0, 0},
                                      [](const Move& a, const Move& b) { return a.src_pe < b.src_pe; });
  const auto to_itself = std::equal_range(of_pe.first, of_pe.second, Move{0, 0, pe, 0},
                                          [](const Move& a, const Move& b) { return a.dst_pe < b.dst_pe; });
  return static_cast<std::size_t>((of_pe.second - of_pe.first) - (to_itself.second - to_itself.first));
}

std::vector<Move> MovePlan::immediate(int pe) const {
  return select(pe, false);
}

std::vector<int> MovePlan::sources_of(int pe) const {
  std::vector<int> sources;
  for (std::size_t i = 0; i < moves_.size(); ++i) {
    const int source = static_cast<int>(moves_[i].src_pe);
    if (moves_[i].dst_pe == pe && !staged_[i] && (sources.empty() || sources.back() != source)) {
      sources.push_back(source);
    }
  }
  return sources;
}

std::vector<Move> MovePlan::staged(int pe) const {
  return most_staged_ == 0 ? std::vector<Move>{} : select(pe, true);
}

std::vector<std::int64_t> MovePlan::cleared(int pe) const {
  std::vector<std::int64_t> blocks;
  for (const Block& block : cleared_) {
    if (block.pe == pe) {
      blocks.push_back(block.index);
    }
  }
  return blocks;
}

}  // namespace shmem::kv
