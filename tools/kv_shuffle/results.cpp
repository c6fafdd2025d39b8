// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/size_text.hpp"

namespace kv_program {

double imbalance(const Load& load) {
  const auto total = std::accumulate(load.begin(), load.end(), std::int64_t{0});
  if (total == 0) {
    return 0;
  }
  const auto most = static_cast<double>(*std::max_element(load.begin(), load.end()));
  return most * static_cast<double>(load.size()) / static_cast<double>(total) - 1;
}

std::optional<double> Results::median(std::optional<double> RoundResult::*value) const {
  std::vector<double> values;
  for (const RoundResult& round : rounds) {
    if (round.*value) {
      values.push_back(*(round.*value));
    }
  }
  if (values.empty()) {
    return std::nullopt;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Results::mean_imbalance(Load RoundResult::*load) const {
  double sum = 0;
  for (const RoundResult& round : rounds) {
    sum += imbalance(round.*load);
  }
  return rounds.empty() ? 0 : sum / static_cast<double>(rounds.size());
}

std::vector<double> Results::mean_load(Load RoundResult::*load) const {
  std::vector<double> mean(rounds.empty() ? 0 : (rounds.front().*load).size());
  for (std::size_t pe = 0; pe < mean.size(); ++pe) {
    const auto add = [&](std::int64_t sum, const RoundResult& round) { return sum + (round.*load)[pe]; };
    const auto sum = std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0}, add);
    mean[pe] = static_cast<double>(sum) / static_cast<double>(rounds.size());
  }
  return mean;
}

std::int64_t Results::spared() const {
  const auto add = [](std::int64_t sum, const RoundResult& round) { return sum + round.spared; };
  return std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0}, add);
}

namespace {

double kibibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1024;
}

using base::count;

std::string describe_caches(const Options& options) {
  const Shape& shape = options.shape;
  std::string text = shape.caches() == 1 ? "latent cache of " : "K and V caches of ";
  if (shape.layers > 1) {
    text += fmt::format("{} layers of ", shape.layers);
  }
  text += fmt::format("{} blocks of {:.1f} KiB", shape.blocks, kibibytes(shape.bytes_of_part()));
  if (shape.format != Format::kApart && shape.format != Format::kLatent) {
    text += fmt::format(" ({})", name_of(shape.format));
  }
  text += fmt::format(", {:.1f} MiB on each PE", kibibytes(shape.bytes()) / 1024);
  return options.blocks_by_budget ? text + " (the number of blocks is limited to 128 MiB; see --blocks)" : text;
}

/// A line for the barriers, and one for the device's counters if there is a device.
std::string describe_barriers(const BarrierCounts& counts, const BarrierTimes& times) {
  const std::string software = fmt::format("{} in software (mean {:.1f} us)", counts.by_software, times.software);
  if (!times.device && counts.by_device == 0) {
    return "barriers:  " + software;
  }
  return fmt::format("barriers:  {} by the GBA ({}), {}\ncounters:  {}", counts.by_device,
                     times.device ? fmt::format("mean {:.1f} us", *times.device) : "then lost", software,
                     times.counters.empty() ? "the device was lost" : times.counters);
}

}  // namespace

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string describe_setup(const Options& options, const Results& results) {
  return fmt::format("{} with {} each, plan {}{}; {}{}", count(results.pes, "PE"), count(options.cores, "core"),
                     options.planner == Planner::kPair ? "pair" : "balanced",
                     options.mode == Mode::kMove ? ", blocks are moved" : "",
                     options.model.empty() ? "" : options.model + ", ", describe_caches(options));
}

std::string describe_trace(const Results& results) {
  return fmt::format(
      "{}, {}{}", results.trace, count(results.requests, "request"),
      results.scale > 1 ? fmt::format(", their tokens scaled by 1/{} to fit the caches", results.scale) : "");
}

std::string describe_speed(const Results& results) {
  const auto shuffling = results.median(&RoundResult::shuffling);
  const auto copying = results.median(&RoundResult::copying);
  if (!shuffling || !copying) {
    return "no speed (nothing was to move)";
  }
  return fmt::format("{:.2f} GB/s; memcpy by as many threads {:.2f} GB/s ({:.0f} %)", *shuffling / 1e9, *copying / 1e9,
                     100 * *shuffling / *copying);
}

std::string describe_results(const Options& options, const Results& results) {
  std::string text =
      fmt::format("shuffled:  {}{}, {:.3f} GB, in {} of {}", count(results.blocks, "block"),
                  options.shape.caches() == 2 ? " of K and V" : "", static_cast<double>(results.bytes) / 1e9,
                  count(results.rounds.size(), "round"), count(options.repeats, "shuffle"));
  if (results.spared() > 0) {
    text += fmt::format("; {} not sent, as the receiver has them", results.spared());
  }
  if (!results.mean_load(&RoundResult::before).empty()) {
    text += fmt::format("\nimbalance: {} more than the mean on the fullest PE before, {} after",
                        percent(results.imbalance_before()), percent(results.imbalance_after()));
  }
  text += fmt::format("\nspeed:     {}; medians of the rounds", describe_speed(results));
  if (const auto share = results.median(&RoundResult::barrier_share)) {
    text += fmt::format("\nwaiting:   {} of the time goes to barriers and agreement", percent(*share));
  }
  return results.barriers ? text + "\n" + describe_barriers(results.counts, *results.barriers) : text;
}

}  // namespace kv_program
