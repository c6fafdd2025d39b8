// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/size_text.hpp"
#include "tools/chart/chart.hpp"

namespace kv_program {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

template <typename Number>
Json number_or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json();
}

Json gigabytes(const std::optional<double>& bytes) {
  return bytes ? Json(*bytes / 1e9) : Json();
}

Json shape_of(const Shape& shape) {
  return {{"format", name_of(shape.format)}, {"element_size", shape.element_size},
          {"layers", shape.layers},          {"blocks", shape.blocks},
          {"kv_heads", shape.kv_heads},      {"page_size", shape.page_size},
          {"head_dim", shape.head_dim},      {"block_bytes", shape.bytes_of_block()},
          {"bytes", shape.bytes()}};
}

Json setup_of(const Options& options, const Results& results) {
  return {{"pes", results.pes},
          {"cores", options.cores},
          {"device", results.device},
          {"model", text_or_null(options.model)},
          {"cache", shape_of(options.shape)},
          {"plan", options.planner == Planner::kPair ? "pair" : "balanced"},
          {"tolerance", options.planner == Planner::kPair ? Json() : Json(options.tolerance)},
          {"mode", options.mode == Mode::kCopy ? "copy" : "move"},
          {"repeats", options.repeats},
          {"trace", text_or_null(results.trace)},
          {"from", number_or_null(options.from)},
          {"to", number_or_null(options.to)},
          {"requests", results.requests},
          {"scale", results.scale}};
}

Json round_of(const RoundResult& round) {
  return {{"load_before", round.before},
          {"load_after", round.after},
          {"imbalance_before", imbalance(round.before)},
          {"imbalance_after", imbalance(round.after)},
          {"blocks", round.blocks},
          {"blocks_spared", round.spared},
          {"gb_per_s", gigabytes(round.shuffling)}};
}

Json barriers_of(const Results& results) {
  Json barriers{{"share_of_time", number_or_null(results.median(&RoundResult::barrier_share))},
                {"by_device", results.counts.by_device},
                {"by_software", results.counts.by_software},
                {"device_us", nullptr},
                {"software_us", nullptr},
                {"counters", nullptr}};
  if (results.barriers) {
    barriers["device_us"] = number_or_null(results.barriers->device);
    barriers["software_us"] = results.barriers->software;
    barriers["counters"] = text_or_null(results.barriers->counters);
  }
  return barriers;
}

}  // namespace

std::string to_json(const Options& options, const Results& results) {
  const auto shuffling = results.median(&RoundResult::shuffling);
  const auto copying = results.median(&RoundResult::copying);
  Json rounds = Json::array();
  for (const RoundResult& round : results.rounds) {
    rounds.push_back(round_of(round));
  }
  const Json object{
      {"result", results.failure.empty() ? "PASS" : "FAIL"},
      {"failure", text_or_null(results.failure)},
      {"setup", setup_of(options, results)},
      {"load_before", results.mean_load(&RoundResult::before)},
      {"load_after", results.mean_load(&RoundResult::after)},
      {"imbalance_before", results.imbalance_before()},
      {"imbalance_after", results.imbalance_after()},
      {"blocks", results.blocks},
      {"blocks_spared", results.spared()},
      {"bytes", results.bytes},
      {"gb_per_s", gigabytes(shuffling)},
      {"memcpy_gb_per_s", gigabytes(copying)},
      {"share_of_memcpy", shuffling && copying ? Json(*shuffling / *copying) : Json()},
      {"barriers", barriers_of(results)},
      {"checked", results.checked},
      {"rounds", rounds},
  };
  // File names may contain bytes that are not UTF-8.
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

/// Over all rounds a PE's load approaches the mean, because requests are dealt in turn.
const RoundResult& least_even(const Results& results) {
  return *std::max_element(
      results.rounds.begin(), results.rounds.end(),
      [](const RoundResult& a, const RoundResult& b) { return imbalance(a.before) < imbalance(b.before); });
}

chart::Series load_bars(const char* name, const Load& load) {
  chart::Series series{.name = name, .bars = true};
  for (std::size_t pe = 0; pe < load.size(); ++pe) {
    series.points.emplace_back(static_cast<double>(pe), static_cast<double>(load[pe]));
  }
  return series;
}

chart::Plot plot_load(const Results& results) {
  const auto& round = least_even(results);
  const auto sum = std::accumulate(round.before.begin(), round.before.end(), std::int64_t{0});
  const auto pes = static_cast<double>(round.before.size());
  const double mean = static_cast<double>(sum) / pes;
  return {.title = fmt::format("Tokens of each PE in round {}, the least even one", &round - results.rounds.data() + 1),
          .x = {.name = "PE"},
          .y = {.name = "tokens"},
          .series = {load_bars("before", round.before),
                     load_bars("after", round.after),
                     {.name = fmt::format("mean {:.0f}", mean),
                      .points = {{-0.5, mean}, {pes - 0.5, mean}},
                      .dashed = true}},
          .height = 300};
}

/// Percent by round. A single round is drawn as a line as well.
chart::Series imbalance_line(const char* name, const Results& results, Load RoundResult::*load) {
  chart::Series series{.name = name};
  for (const RoundResult& round : results.rounds) {
    series.points.emplace_back(static_cast<double>(series.points.size() + 1), 100 * imbalance(round.*load));
  }
  if (series.points.size() == 1) {
    series.points.emplace_back(2, series.points.front().second);
  }
  return series;
}

chart::Plot plot_imbalance(const Results& results) {
  return {.title = "Imbalance of each round: the fullest PE above the mean",
          .x = {.name = "round"},
          .y = {.unit = " %"},
          .series = {imbalance_line("before", results, &RoundResult::before),
                     imbalance_line("after", results, &RoundResult::after)},
          .height = 240};
}

}  // namespace

std::string to_svg(const Options& options, const Results& results) {
  const auto share = results.median(&RoundResult::barrier_share);
  const std::vector<std::string> heading{
      "kv_shuffle: " + (results.failure.empty() ? "PASS" : "FAIL: " + results.failure),
      describe_setup(options, results), "trace: " + describe_trace(results),
      fmt::format("{} moved ({:.3f} GB) at {}", base::count(results.blocks, "block"),
                  static_cast<double>(results.bytes) / 1e9, describe_speed(results)),
      fmt::format("imbalance {} before, {} after{}", percent(results.imbalance_before()),
                  percent(results.imbalance_after()),
                  share ? fmt::format("; barriers {} of the time", percent(*share)) : "")};
  if (results.mean_load(&RoundResult::before).empty()) {
    return chart::to_svg({}, heading);
  }
  return chart::to_svg({plot_load(results), plot_imbalance(results)}, heading);
}

namespace {

Result<void> open_file(std::ofstream& file, const std::string& path) {
  errno = 0;
  file.open(path, std::ios::trunc);
  return file ? Result<void>{} : fail_errno(errno, "cannot write " + path);
}

Result<void> put(std::ostream& file, const std::string& path, const std::string& content) {
  errno = 0;
  file << content << std::flush;
  return file ? Result<void>{} : fail_errno(errno, "cannot write " + path);
}

}  // namespace

Result<void> Outputs::open(const Options& options) {
  if (options.json && !options.json_only()) {
    if (auto ok = open_file(json_, *options.json); !ok) {
      return ok;
    }
  }
  return options.report.empty() ? Result<void>{} : open_file(report_, options.report);
}

Result<void> Outputs::write(const Options& options, const Results& results) {
  if (options.json) {
    std::ostream& out = options.json_only() ? std::cout : json_;
    const std::string name = options.json_only() ? "standard output" : *options.json;
    if (auto ok = put(out, name, to_json(options, results)); !ok) {
      return ok;
    }
  }
  return options.report.empty() ? Result<void>{} : put(report_, options.report, to_svg(options, results));
}

}  // namespace kv_program
