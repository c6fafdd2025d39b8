// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/texts.hpp"

#include <cstdio>

namespace kv_program {
namespace {

std::string kibibytes(std::int64_t bytes) {
  return number(static_cast<double>(bytes) / 1024, 1) + " KiB";
}

std::string mebibytes(std::int64_t bytes) {
  return number(static_cast<double>(bytes) / 1024 / 1024, 1) + " MiB";
}

std::string count(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::string describe_caches(const Options& options) {
  const Shape& shape = options.shape;
  std::string text = shape.caches() == 1 ? "latent cache of " : "K and V caches of ";
  if (shape.layers > 1) {
    text += std::to_string(shape.layers) + " layers of ";
  }
  text += std::to_string(shape.blocks) + " blocks of " + kibibytes(shape.bytes_of_part());
  if (shape.format != Format::kApart && shape.format != Format::kLatent) {
    text += std::string(" (") + name_of(shape.format) + ")";
  }
  text += ", " + mebibytes(shape.bytes()) + " on each PE";
  return options.blocks_by_budget ? text + " (so few blocks to fit 128 MiB; see --blocks)" : text;
}

/// A line for the barriers, and one for the device's counters if there is one.
std::string describe_barriers(const BarrierCounts& counts, const BarrierTimes& times) {
  std::string text = "barriers:  ";
  const bool had_device = times.device || counts.by_device > 0;
  if (had_device) {
    text += std::to_string(counts.by_device) + " by the GBA (" +
            (times.device ? "mean " + number(*times.device, 1) + " us" : "then lost") + "), ";
  }
  text += std::to_string(counts.by_software) + " in software (mean " + number(times.software, 1) + " us)";
  return had_device ? text + "\ncounters:  " + (times.counters.empty() ? "the device was lost" : times.counters) : text;
}

}  // namespace

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string percent(double share) {
  return number(100 * share, 1) + " %";
}

std::string describe_setup(const Options& options, const Results& results) {
  return count(static_cast<std::size_t>(results.pes), "PE") + " with " +
         count(static_cast<std::size_t>(options.cores), "core") + " each, plan " +
         (options.planner == Planner::kPair ? "pair" : "balanced") +
         (options.mode == Mode::kMove ? ", blocks are moved" : "") + "; " +
         (options.model.empty() ? "" : options.model + ", ") + describe_caches(options);
}

std::string describe_trace(const Results& results) {
  std::string text = results.trace + ", " + std::to_string(results.requests) + " requests";
  if (results.scale > 1) {
    text += ", their tokens scaled by 1/" + std::to_string(results.scale) + " to fit the caches";
  }
  return text;
}

std::string describe_speed(const Results& results) {
  const auto shuffling = results.median(&RoundResult::shuffling);
  const auto copying = results.median(&RoundResult::copying);
  if (!shuffling || !copying) {
    return "no speed (nothing was to move)";
  }
  return number(*shuffling / 1e9, 2) + " GB/s; memcpy by as many threads " + number(*copying / 1e9, 2) + " GB/s (" +
         number(100 * *shuffling / *copying, 0) + " %)";
}

std::string describe_results(const Options& options, const Results& results) {
  std::string text = "shuffled:  " + std::to_string(results.blocks) + " blocks" +
                     (options.shape.caches() == 2 ? " of K and V, " : ", ") +
                     number(static_cast<double>(results.bytes) / 1e9, 3) + " GB, in " +
                     count(results.rounds.size(), "round") + " of " +
                     count(static_cast<std::size_t>(options.repeats), "shuffle");
  if (results.spared() > 0) {
    text += "; " + std::to_string(results.spared()) + " not sent, as the receiver has them";
  }
  if (!results.mean_load(&RoundResult::before).empty()) {
    text += "\nimbalance: " + percent(results.imbalance_before()) + " more than the mean on the fullest PE before, " +
            percent(results.imbalance_after()) + " after";
  }
  text += "\nspeed:     " + describe_speed(results) + "; medians of the rounds";
  if (const auto share = results.median(&RoundResult::barrier_share)) {
    text += "\nwaiting:   " + percent(*share) + " of the time goes to barriers and agreement";
  }
  return results.barriers ? text + "\n" + describe_barriers(results.counts, *results.barriers) : text;
}

}  // namespace kv_program
