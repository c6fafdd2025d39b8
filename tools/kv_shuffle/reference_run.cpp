// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/reference.hpp"

#include <fmt/format.h>

#include "tools/kv_shuffle/replay.hpp"
#include "tools/kv_shuffle/rounds.hpp"

namespace kv_program {
namespace {

/// agree() for errors that all PEs find: only PE 0 reports them.
Outcome agree_on_shared(Agreement& agreement, const Result<void>& mine) {
  auto failed = agree(agreement, mine);
  return failed && shmem_my_pe() != 0 ? "" : failed;
}

Result<void> take_blocks(const ReferenceFolder& folder, Options& options) {
  const auto blocks = folder.count_blocks(options.shape.bytes_of_part());
  if (!blocks) {
    return blocks.error();
  }
  options.shape.blocks = *blocks;
  options.blocks_by_budget = false;
  return {};
}

void note_setup(const Options& options, Results& results) {
  results.device = describe_device();
  results.trace = "files in " + options.import_from;
  if (!options.json_only()) {
    say("setup:     " + describe_setup(options, results));
    say("device:    " + results.device);
    say("files:     " + options.import_from);
  }
}

Outcome shuffle_files(const Options& options, const ReferenceFolder& folder, const RoundPlan& plan,
                      Agreement& agreement, Results& results) {
  const Caches caches{options.shape};
  if (!caches.ok()) {
    return failure_of_all("there is not enough symmetric memory (SHMEM_SYMMETRIC_SIZE)");
  }
  if (auto failed = agree(agreement, folder.read_inputs(caches))) {
    return failed;
  }
  auto rounds = Rounds::create(options, caches);
  if (!rounds) {
    return failure_of_all(rounds.error().text);
  }
  note_setup(options, results);
  const auto ran = (*rounds)->run(plan);
  if (auto failed = agree(agreement, without_value(ran))) {
    return failed;
  }
  results.rounds.push_back(*ran);
  results.blocks = ran->blocks * options.repeats;
  results.bytes = results.blocks * options.shape.bytes_of_block();
  if (auto failed = agree(agreement, folder.write_caches(ReferenceFolder::Kind::kOutput, caches))) {
    return failed;
  }
  measure_barriers(agreement, results);
  if (!options.json_only()) {
    say(describe_results(options, results));
  }
  results.checked = options.check;
  if (!options.check) {
    return std::nullopt;
  }
  auto failed = agree(agreement, folder.compare_with_golden(caches, plan.pairs));
  if (!failed && !options.json_only()) {
    say(fmt::format("check:     every byte of {} caches is as {}", 2 * shmem_n_pes(),
                    folder.has_golden() ? "in the golden files" : "inputs and tables say"));
  }
  return failed;
}

}  // namespace

Outcome run_import(Options& options, Agreement& agreement, Results& results) {
  const ReferenceFolder folder{options.import_from};
  if (auto failed = agree_on_shared(agreement, take_blocks(folder, options))) {
    return failed;
  }
  auto pairs = folder.read_plan(shmem_n_pes(), options.shape.blocks);
  if (auto failed = agree_on_shared(agreement, without_value(pairs))) {
    return failed;
  }
  if (const std::string wrong = too_large(options.shape); !wrong.empty()) {
    return failure_of_all(wrong);
  }
  const auto plan = round_of_pairs(*std::move(pairs));
  if (auto failed = agree_on_shared(agreement, without_value(plan))) {
    return failed;
  }
  return shuffle_files(options, folder, *plan, agreement, results);
}

namespace {

TraceWindow example_window(int pes) {
  constexpr int kSequences = 5;
  constexpr std::uint64_t kTokens = 1024;
  std::uint64_t random = 42;  // the example's seed
  TraceWindow window(static_cast<std::size_t>(pes));
  for (auto& sequences : window) {
    for (int i = 0; i < kSequences; ++i) {
      random += base::kGoldenRatio;
      sequences.push_back({static_cast<std::int64_t>((base::mix(random) >> 48) % kTokens)});
    }
  }
  return window;
}

/// The blocks that each PE's sequences use. Error: a cache is too small.
Result<std::vector<std::int64_t>> used_blocks(const TraceWindow& window, const Geometry& geometry) {
  std::vector<std::int64_t> used(window.size());
  for (std::size_t pe = 0; pe < window.size(); ++pe) {
    for (const DealtSequence& sequence : window[pe]) {
      used[pe] += blocks_of(sequence.tokens, geometry.page);
    }
    if (used[pe] > geometry.blocks) {
      return fail(std::errc::no_buffer_space,
                  fmt::format("cannot plan: the {} sequences of PE {} do not fit into its {} blocks of {} tokens",
                              window[pe].size(), pe, geometry.blocks, geometry.page));
    }
  }
  return used;
}

/// Blocks in use have different contents, all others are zeros.
Result<void> write_inputs(const ReferenceFolder& folder, const Shape& shape, std::int64_t used) {
  const auto block_bytes = static_cast<std::size_t>(shape.bytes_of_part());
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.blocks) * block_bytes);
  for (const Cache cache : {Cache::kK, Cache::kV}) {
    for (std::int64_t block = 0; block < used; ++block) {
      fill_part(std::span(bytes).subspan(static_cast<std::size_t>(block) * block_bytes, block_bytes),
                {shmem_my_pe(), block}, {0, cache});
    }
    if (auto ok = folder.write_cache(cache, ReferenceFolder::Kind::kInput, bytes); !ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace

Outcome run_generate(const Options& options, Agreement& agreement) {
  const ReferenceFolder folder{options.generate_in};
  TraceWindow window = example_window(shmem_n_pes());
  const auto used = used_blocks(window, options.geometry());
  if (!used) {
    return failure_of_all(used.error().text);
  }
  const auto plan = plan_round(options, std::move(window));
  if (!plan) {
    return failure_of_all(plan.error().text);
  }
  auto written = folder.create();
  if (written) {
    written = write_inputs(folder, options.shape, (*used)[static_cast<std::size_t>(shmem_my_pe())]);
  }
  if (written) {
    written = folder.write_plan(plan->pairs);
  }
  if (auto failed = agree(agreement, written)) {
    return failed;
  }
  return agree(agreement, folder.write_golden(options.shape, plan->pairs));
}

Exporter::Exporter(const Options& options, const Caches& caches, Agreement& agreement)
    : caches_(caches), agreement_(agreement) {
  if (!options.export_to.empty()) {
    folder_.emplace(options.export_to);
  }
}

Outcome Exporter::before(const RoundPlan& plan) {
  if (!folder_) {
    return std::nullopt;
  }
  auto written = folder_->create();
  if (written) {
    written = folder_->write_caches(ReferenceFolder::Kind::kInput, caches_);
  }
  if (written) {
    written = folder_->write_plan(plan.pairs);
  }
  if (auto failed = agree(agreement_, written)) {
    return failed;
  }
  return agree(agreement_, folder_->write_golden(caches_.shape(), plan.pairs));
}

Outcome Exporter::after() {
  return folder_ ? agree(agreement_, folder_->write_caches(ReferenceFolder::Kind::kOutput, caches_)) : std::nullopt;
}

}  // namespace kv_program
