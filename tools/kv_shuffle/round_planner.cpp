// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/round_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kv_program {
namespace {

/// The content of a block: a hash, or the block's own place if no other block is equal.
struct Content {
  bool is_hash;
  std::uint64_t number;

  friend bool operator==(const Content&, const Content&) = default;
};

/// The contents of all blocks of all PEs, by name.
class Contents {
 public:
  Contents(std::int64_t pes, std::int64_t blocks) : blocks_(blocks) {
    contents_.reserve(static_cast<std::size_t>(pes * blocks));
    for (std::int64_t i = 0; i < pes * blocks; ++i) {
      contents_.push_back({false, static_cast<std::uint64_t>(i)});
    }
  }
  Content& at(std::int64_t pe, std::int64_t block) {
    return contents_.at(static_cast<std::size_t>(pe * blocks_ + block));
  }

  void apply(std::span<const shmemx_kv_move_t> moves) {
    std::vector<Content> sources;
    sources.reserve(moves.size());
    for (const auto& move : moves) {
      sources.push_back(at(move.src_pe, move.src_block));
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
      at(moves[i].dst_pe, moves[i].dst_block) = sources[i];
    }
  }

 private:
  std::int64_t blocks_;
  std::vector<Content> contents_;
};

/// The first blocks of a sequence's table, which contain something.
std::int64_t filled_blocks(const shmemx_kv_sequence_t& sequence, std::int64_t page) {
  return std::max((sequence.tokens + page - 1) / page, sequence.hash_count);
}

}  // namespace

std::string find_misplaced(std::span<const shmemx_kv_sequence_t> sequences, std::span<const shmemx_kv_move_t> moves,
                           std::span<const shmemx_kv_placement_t> placements, int pes, const Geometry& geometry) {
  Contents before(pes, geometry.blocks);
  for (const auto& sequence : sequences) {
    for (std::int64_t i = 0; i < sequence.hash_count; ++i) {
      before.at(sequence.pe, sequence.blocks[i]) = {true, sequence.hashes[i]};
    }
  }
  Contents after = before;
  after.apply(moves);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const auto& sequence = sequences[s];
    const auto& placement = placements[s];
    for (std::int64_t i = 0; i < filled_blocks(sequence, geometry.page); ++i) {
      if (after.at(placement.pe, placement.blocks[i]) != before.at(sequence.pe, sequence.blocks[i])) {
        return fmt::format("the plan loses block {} of sequence {}, which goes from PE {} to PE {}", i, s, sequence.pe,
                           placement.pe);
      }
    }
  }
  return "";
}

Error library_error(int error, const std::string& doing) {
  return fail(std::errc{-error}, doing + shmemx_error_text());
}

std::span<const shmemx_kv_move_t> RoundPlan::moves() const {
  const shmemx_kv_move_t* moves = nullptr;
  std::size_t count = 0;
  shmemx_kv_plan_moves(plan.get(), &moves, &count);
  return {moves, count};
}

namespace {

/// The tables of a plan in which no PE sends to two, or sends and receives. PEs without moves are paired with
/// themselves, idle.
PairPlan pairs_of(std::span<const shmemx_kv_move_t> moves, std::size_t pes) {
  PairPlan pairs(pes);
  for (std::size_t pe = 0; pe < pes; ++pe) {
    pairs[pe].partner = static_cast<std::int64_t>(pe);
  }
  for (const auto& move : moves) {
    PairRow& sender = pairs[static_cast<std::size_t>(move.src_pe)];
    sender.operation = kSend;
    sender.partner = move.dst_pe;
    sender.source.push_back(move.src_block);
    sender.destination.push_back(move.dst_block);
    pairs[static_cast<std::size_t>(move.dst_pe)].partner = move.src_pe;
  }
  return pairs;
}

Result<std::vector<shmemx_kv_placement_t>> placements_of(const shmemx_kv_plan_t* plan, std::size_t sequences) {
  std::vector<shmemx_kv_placement_t> placements(sequences);
  for (std::size_t i = 0; i < sequences; ++i) {
    if (const int error = shmemx_kv_plan_placement(plan, i, &placements[i]); error != 0) {
      return library_error(error);
    }
  }
  return placements;
}

}  // namespace

Result<RoundPlan> plan_round(const Options& options, TraceWindow window) {
  const auto pes = window.size();
  const PageTables tables{std::move(window), options.shape.page_size};
  const auto sequences = tables.sequences();
  const shmemx_kv_planning_t planning{.planner = static_cast<std::int32_t>(options.planner),
                                      .mode = static_cast<std::int32_t>(options.mode),
                                      .n_pes = static_cast<std::int32_t>(pes),
                                      .reserved = 0,
                                      .blocks = options.shape.blocks,
                                      .page_size = options.shape.page_size,
                                      .tolerance = options.tolerance};
  shmemx_kv_plan_t* plan = nullptr;
  if (const int error = shmemx_kv_plan_balance(sequences.data(), sequences.size(), &planning, &plan); error != 0) {
    return library_error(error);
  }
  RoundPlan round{.plan = PlanHandle(plan), .before = Load(pes), .after = Load(pes)};
  const auto placements = placements_of(plan, sequences.size());
  if (!placements) {
    return placements.error();
  }
  const auto moves = round.moves();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto& placement = (*placements)[i];
    round.before[static_cast<std::size_t>(sequences[i].pe)] += sequences[i].tokens;
    round.after[static_cast<std::size_t>(placement.pe)] += sequences[i].tokens;
    if (options.planner == Planner::kBalanced && placement.pe != sequences[i].pe) {
      round.spared += filled_blocks(sequences[i], options.shape.page_size);
    }
  }
  if (options.planner == Planner::kBalanced) {
    round.spared -= static_cast<std::int64_t>(moves.size());
  } else if (options.mode == Mode::kCopy) {  // a pair table cannot say that blocks are cleared
    round.pairs = pairs_of(moves, pes);
  }
  if (options.check) {
    const std::string lost = find_misplaced(sequences, moves, *placements, static_cast<int>(pes), options.geometry());
    if (!lost.empty()) {
      return fail(std::errc::protocol_error, lost);
    }
  }
  return round;
}

Result<RoundPlan> round_of_pairs(PairPlan pairs) {
  std::vector<shmemx_kv_move_t> moves;
  for (std::size_t pe = 0; pe < pairs.size(); ++pe) {
    const PairRow& row = pairs[pe];
    for (std::size_t i = 0; row.operation == kSend && i < row.source.size(); ++i) {
      moves.push_back({.src_pe = static_cast<std::int64_t>(pe),
                       .src_block = row.source[i],
                       .dst_pe = row.partner,
                       .dst_block = row.destination[i]});
    }
  }
  shmemx_kv_plan_t* plan = nullptr;
  if (const int error = shmemx_kv_plan_create(moves.data(), moves.size(), SHMEMX_KV_COPY, &plan); error != 0) {
    return library_error(error);
  }
  return RoundPlan{.plan = PlanHandle(plan), .pairs = std::move(pairs)};
}

namespace {

std::int64_t milliseconds(double seconds) {
  return static_cast<std::int64_t>(std::llround(seconds * 1000));
}

Result<std::unique_ptr<Trace>> open_trace(const Options& options) {
  using OpenedTrace = Result<std::unique_ptr<Trace>>;
  auto trace = options.trace.empty() ? OpenedTrace(std::make_unique<BuiltinTrace>()) : TraceFile::open(options.trace);
  if (!trace || (!options.from && !options.to)) {
    return trace;
  }
  const auto to = options.to ? std::optional(milliseconds(*options.to)) : std::nullopt;
  return TraceSlice::create(*std::move(trace), milliseconds(options.from.value_or(0)), to);
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the Result owns it

}  // namespace

RoundPlanner::RoundPlanner(const Options& options)
    : options_(options), pes_(shmem_n_pes()), words_(most_words() * sizeof(std::uint64_t)) {}

std::size_t RoundPlanner::most_words() const {
  constexpr std::size_t kOfSequence = 3;  // tokens, number of hashes, a hash
  return 2 + static_cast<std::size_t>(pes_) * (1 + kOfSequence * static_cast<std::size_t>(options_.shape.blocks / 2));
}

Result<void> RoundPlanner::open() {
  if (shmem_my_pe() != 0) {
    return {};
  }
  auto trace = open_trace(options_);
  if (!trace) {
    return trace.error();
  }
  auto dealer = WindowDealer::create(*std::move(trace), pes_, options_.geometry());
  if (!dealer) {
    return dealer.error();
  }
  dealer_.emplace(*std::move(dealer));
  return {};
}

Result<void> RoundPlanner::publish_window() {
  if (!dealer_) {
    return {};
  }
  const auto window = dealer_->next();
  if (!window) {
    return window.error();
  }
  auto* word = reinterpret_cast<std::uint64_t*>(words_.get());
  *word++ = static_cast<std::uint64_t>(dealer_->dealt());
  *word++ = static_cast<std::uint64_t>(dealer_->requests());
  for (const auto& sequences : *window) {
    *word++ = sequences.size();
    for (const DealtSequence& sequence : sequences) {
      *word++ = static_cast<std::uint64_t>(sequence.tokens);
      *word++ = sequence.hashes.size();
      word = std::copy(sequence.hashes.begin(), sequence.hashes.end(), word);
    }
  }
  return {};
}

TraceWindow RoundPlanner::fetch_window() {
  std::vector<std::uint64_t> words(most_words());
  shmem_getmem(words.data(), words_.get(), words.size() * sizeof(std::uint64_t), 0);
  const std::uint64_t* word = words.data();
  share_ = static_cast<double>(word[0]) / static_cast<double>(word[1]);
  word += 2;
  TraceWindow window(static_cast<std::size_t>(pes_));
  for (auto& sequences : window) {
    for (auto left = *word++; left > 0; --left) {
      const auto tokens = static_cast<std::int64_t>(word[0]);
      const std::uint64_t* hashes = word + 2;
      word = hashes + word[1];
      sequences.push_back({tokens, {hashes, word}});
    }
  }
  return window;
}

Result<RoundPlan> RoundPlanner::next() {
  auto published = publish_window();
  // Also the barrier between PE 0's writing and the others' reading.
  if (!agreement_.all(published.has_value())) {
    return published ? fail(std::errc::io_error, "") : published.error();
  }
  TraceWindow window = fetch_window();
  shmem_barrier_all();  // PE 0 writes the next window after all have read this one
  return plan_round(options_, std::move(window));
}

}  // namespace kv_program
