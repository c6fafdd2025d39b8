// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/replay.hpp"

#include "shmem/kv/program/barriers.hpp"
#include "shmem/kv/program/expected.hpp"
#include "shmem/kv/program/exporter.hpp"
#include "shmem/kv/program/memory.hpp"
#include "shmem/kv/program/progress.hpp"
#include "shmem/kv/program/rounds.hpp"
#include "shmem/kv/program/texts.hpp"
#include "shmem/kv/program/windows.hpp"

namespace kv_program {
namespace {

void say_setup(const Options& options, const Windows& windows, Results& results) {
  results.device = describe_device();
  if (shmem_my_pe() != 0) {
    return;
  }
  results.trace = windows.dealer().trace().name();
  results.requests = windows.dealer().requests();
  results.scale = windows.dealer().scale();
  if (!options.json_only()) {
    say("setup:     " + describe_setup(options, results));
    say("device:    " + results.device);
    say("trace:     " + describe_trace(results));
  }
}

Outcome shuffle_rounds(const Options& options, Windows& windows, Rounds& rounds, Agreement& agreement,
                       Exporter& exporter, Expected* expected, Results& results) {
  Progress progress;
  for (int round = 1;; ++round) {
    const auto plan = windows.next();
    if (!plan) {
      return plan.error().text;  // "" on the PEs that did not see it
    }
    if (auto failed = exporter.before(*plan)) {
      return failed;
    }
    const auto ran = rounds.run(*plan);
    if (auto failed = agree(agreement, without_value(ran))) {
      return failed;
    }
    if (auto failed = exporter.after()) {
      return failed;
    }
    for (int i = 0; expected != nullptr && i < options.repeats; ++i) {
      expected->apply(plan->moves, options.mode == Mode::kMove);
    }
    results.rounds.push_back(*ran);
    results.blocks += ran->blocks * options.repeats;
    results.bytes = results.blocks * options.shape.bytes_of_block();
    const bool until_end = options.rounds == kAllRounds;
    const double done = until_end ? windows.share_of_trace() : static_cast<double>(round) / options.rounds;
    progress.show(done, "round " + std::to_string(round));
    if (done >= 1) {
      return std::nullopt;
    }
  }
}

/// Each PE looks at its own caches.
Outcome check(const Options& options, const Caches& caches, const Expected& expected, Agreement& agreement) {
  shmem_barrier_all();
  const std::string wrong = expected.compare(caches);
  if (auto failed = agree(agreement, wrong.empty() ? shmem::Result<void>{} : shmem::fail(std::errc::io_error, wrong))) {
    return failed;
  }
  if (!options.json_only()) {
    say("check:     every byte of " + std::to_string(caches.shape().caches() * shmem_n_pes()) +
        " caches is what it must be");
  }
  return std::nullopt;
}

Outcome replay_with(const Options& options, Windows& windows, const Caches& caches, Agreement& agreement,
                    Results& results) {
  if (auto failed = agree(agreement, windows.open())) {
    return failed;
  }
  auto rounds = Rounds::create(options, caches);
  if (!rounds) {
    return failure_of_all(rounds.error().text);
  }
  say_setup(options, windows, results);
  caches.fill();
  std::optional<Expected> expected;
  if (options.check) {
    expected.emplace(shmem_n_pes(), options.shape.blocks);
  }
  Exporter exporter{options, caches, agreement};
  if (auto failed =
          shuffle_rounds(options, windows, **rounds, agreement, exporter, expected ? &*expected : nullptr, results)) {
    return failed;
  }
  results.barriers = time_barriers(agreement);
  results.counts = count_barriers();
  if (!options.json_only()) {
    say(describe_results(options, results));
  }
  results.checked = options.check;
  return expected ? check(options, caches, *expected, agreement) : std::nullopt;
}

}  // namespace

Outcome replay(const Options& options, Agreement& agreement, Results& results) {
  if (const std::string wrong = too_large(options.shape); !wrong.empty()) {
    return failure_of_all(wrong);
  }
  Windows windows{options};
  const Caches caches{options.shape};
  if (!windows.there() || !caches.there()) {
    return failure_of_all("there is not enough symmetric memory (SHMEM_SYMMETRIC_SIZE, or fewer --blocks)");
  }
  return replay_with(options, windows, caches, agreement, results);
}

}  // namespace kv_program
