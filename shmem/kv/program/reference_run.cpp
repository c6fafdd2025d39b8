// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/reference_run.hpp"

#include "shmem/kv/program/barriers.hpp"
#include "shmem/kv/program/caches.hpp"
#include "shmem/kv/program/memory.hpp"
#include "shmem/kv/program/reference_caches.hpp"
#include "shmem/kv/program/rounds.hpp"
#include "shmem/kv/program/texts.hpp"

namespace kv_program {
namespace {

using shmem::Result;
using shmem::kv::PairPlan;

/// The same, of what all PEs find alike: one of them says it.
Outcome agree_on_shared(Agreement& agreement, const Result<void>& mine) {
  auto failed = agree(agreement, mine);
  return failed && shmem_my_pe() != 0 ? "" : failed;
}

Result<void> take_blocks(const ReferenceFolder& folder, Options& options) {
  const auto blocks = folder.count_blocks(options.shape.bytes_of_part());
  if (!blocks) {
    return tl::make_unexpected(blocks.error());
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

Outcome shuffle_files(const Options& options, const ReferenceFolder& folder, const PairPlan& pairs,
                      Agreement& agreement, Results& results) {
  const Caches caches{options.shape};
  if (!caches.there()) {
    return failure_of_all("there is not enough symmetric memory (SHMEM_SYMMETRIC_SIZE)");
  }
  if (auto failed = agree(agreement, read_inputs(folder, caches))) {
    return failed;
  }
  auto rounds = Rounds::create(options, caches);
  if (!rounds) {
    return failure_of_all(rounds.error().text);
  }
  note_setup(options, results);
  const auto ran = (*rounds)->run({.moves = shmem::kv::moves_of(pairs), .pairs = pairs});
  if (auto failed = agree(agreement, without_value(ran))) {
    return failed;
  }
  results.rounds.push_back(*ran);
  results.blocks = ran->blocks * options.repeats;
  results.bytes = results.blocks * options.shape.bytes_of_block();
  if (auto failed = agree(agreement, write_caches(folder, ReferenceFolder::Kind::kOutput, caches))) {
    return failed;
  }
  results.barriers = time_barriers(agreement);
  results.counts = count_barriers();
  if (!options.json_only()) {
    say(describe_results(options, results));
  }
  results.checked = options.check;
  if (!options.check) {
    return std::nullopt;
  }
  auto failed = agree(agreement, compare_with_golden(folder, caches, pairs));
  if (!failed && !options.json_only()) {
    say("check:     every byte of " + std::to_string(2 * shmem_n_pes()) + " caches is as " +
        (folder.has_golden() ? "in the golden files" : "inputs and tables say"));
  }
  return failed;
}

}  // namespace

Outcome run_import(Options& options, Agreement& agreement, Results& results) {
  const ReferenceFolder folder{options.import_from};
  if (auto failed = agree_on_shared(agreement, take_blocks(folder, options))) {
    return failed;
  }
  const auto plan = folder.read_plan(shmem_n_pes(), options.shape.blocks);
  if (auto failed = agree_on_shared(agreement, without_value(plan))) {
    return failed;
  }
  if (const std::string wrong = too_large(options.shape); !wrong.empty()) {
    return failure_of_all(wrong);
  }
  return shuffle_files(options, folder, *plan, agreement, results);
}

}  // namespace kv_program
