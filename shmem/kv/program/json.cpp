// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/json.hpp"

#include <nlohmann/json.hpp>

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
  // Names of files may hold bytes that are no UTF-8.
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kv_program
