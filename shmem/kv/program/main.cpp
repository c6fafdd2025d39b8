// SPDX-License-Identifier: Apache-2.0
// kv_shuffle: balances the KV caches of several PEs for a trace of requests.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "shmem/kv/program/barriers.hpp"
#include "shmem/kv/program/expected.hpp"
#include "shmem/kv/program/rounds.hpp"
#include "shmem/kv/program/windows.hpp"

namespace {

using namespace kv_program;  // NOLINT(google-build-using-namespace): this is its main file

/// Nothing if all went well, else what did not; "" where another PE says it.
using Outcome = std::optional<std::string>;

/// A failure that all PEs have seen.
Outcome failure_of_all(const std::string& text) {
  return shmem_my_pe() == 0 ? text : "";
}

std::string number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void describe_setup(const Options& options, const Windows& windows) {
  if (shmem_my_pe() != 0) {
    return;
  }
  say("PEs:       " + std::to_string(shmem_n_pes()) + " with " + std::to_string(options.cores) +
      " cores each; K and V caches of " + std::to_string(options.shape.blocks) + " blocks of " +
      number(static_cast<double>(options.block_bytes()) / 1024, 1) + " KiB");
  say("device:    " + describe_device());
  say("trace:     " + windows.describe());
}

/// The middle one says more than the mean on a machine that does other things as well.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void describe_speed(const Options& options, const Totals& totals) {
  say("shuffled:  " + std::to_string(totals.blocks) + " blocks of K and V, " +
      number(static_cast<double>(totals.bytes) / 1e9, 3) + " GB, in " + std::to_string(options.rounds) + " rounds of " +
      std::to_string(options.repeats) + " shuffles");
  if (!totals.shuffling.empty()) {
    const double shuffle = median(totals.shuffling);
    const double copy = median(totals.copying);
    say("speed:     " + number(shuffle / 1e9, 2) + " GB/s; memcpy by as many threads " + number(copy / 1e9, 2) +
        " GB/s (" + number(100 * shuffle / copy, 0) + " %); medians of the rounds");
  }
}

Outcome shuffle_rounds(const Options& options, Windows& windows, Rounds& rounds, Agreement& agreement,
                       Expected* expected) {
  for (int round = 0; round < options.rounds; ++round) {
    const auto plan = windows.next();
    if (!plan) {
      return plan.error().text;  // "" on the PEs that did not see it
    }
    const auto ran = rounds.run(*plan);
    if (!agreement.all(ran.has_value())) {
      return ran ? "" : ran.error().text;
    }
    if (expected != nullptr) {
      expected->apply(*plan);
    }
  }
  return std::nullopt;
}

/// The PE that has `expected` compares; the others hear what came of it.
Outcome check(const Caches& caches, const Expected* expected, Agreement& agreement) {
  shmem_barrier_all();
  const std::string wrong = expected != nullptr ? expected->compare(caches) : "";
  if (!agreement.all(wrong.empty())) {
    return wrong;
  }
  say("check:     every byte of " + std::to_string(2 * shmem_n_pes()) + " caches is what it must be");
  return std::nullopt;
}

Outcome run(const Options& options) {
  Agreement agreement;
  Windows windows{options};
  const Caches caches{options};
  if (!agreement.there() || !windows.there() || !caches.there()) {
    return failure_of_all("not enough symmetric memory for caches of " + std::to_string(options.cache_bytes()) +
                          " bytes (SHMEM_SYMMETRIC_SIZE, or fewer --blocks)");
  }
  const auto opened = windows.open(options.trace);
  if (!agreement.all(opened.has_value())) {
    return opened ? "" : opened.error().text;
  }
  auto rounds = Rounds::create(options, caches);
  if (!rounds) {
    return failure_of_all(rounds.error().text);
  }
  describe_setup(options, windows);
  caches.fill();
  std::optional<Expected> expected;
  if (options.check && shmem_my_pe() == 0) {
    expected.emplace(shmem_n_pes(), options.shape.blocks);
  }
  Expected* const expecting = expected ? &*expected : nullptr;
  if (auto failed = shuffle_rounds(options, windows, **rounds, agreement, expecting); failed) {
    return failed;
  }
  describe_speed(options, (*rounds)->totals());
  const BarrierTimes times = time_barriers();
  if (shmem_my_pe() == 0) {
    say(describe_counts(times));
  }
  return options.check ? check(caches, expecting, agreement) : std::nullopt;
}

/// The exit code, the same on all PEs.
int run_and_tell(int argc, char** argv) {
  const CommandLine line = read_command_line(argc, argv);
  if (!line.go_on) {
    if (shmem_my_pe() == 0) {
      std::fputs(line.text.c_str(), line.exit_code == 0 ? stdout : stderr);
    }
    return line.exit_code;
  }
  const Outcome failed = run(line.options);
  if (!failed) {
    say("kv_shuffle: PASS");
    return EXIT_SUCCESS;
  }
  if (!failed->empty() && shmem_my_pe() != 0) {
    complain("kv_shuffle: PE " + std::to_string(shmem_my_pe()) + ": " + *failed);
  }
  say("kv_shuffle: FAIL" + (failed->empty() ? "" : ": " + *failed));
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  shmem_init();
  const int code = run_and_tell(argc, argv);
  shmem_finalize();
  return code;
}
