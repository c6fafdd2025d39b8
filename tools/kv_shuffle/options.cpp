// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>

#include "base/option_help.hpp"
#include "gba/version.h"

namespace kv_program {
namespace {

// A cache of more than 1 TiB is a mistake; below that no product overflows.
constexpr std::int64_t kMostBlocks = 1 << 20;
constexpr std::int64_t kMostInDimension = 1 << 10;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
/// The size of a PE's caches without --blocks: models have large blocks, and machines many PEs.
constexpr std::int64_t kBudget = std::int64_t{128} << 20;
constexpr std::int64_t kUsualBlocks = 160;
constexpr std::int64_t kFewestBlocks = 2;

/// Ascend SHMEM's example has pages of 128 tokens, and room for 10 sequences of 1024.
constexpr std::int64_t kReferencePage = 128;
constexpr std::int64_t kReferenceTokens = std::int64_t{10} * 1024;

/// Arguments that are not options yet.
struct Words {
  std::string rounds = "10";
  std::string planner = "pair";
  std::string mode = "copy";
  std::string path = "auto";
  std::string format, dtype;
  std::optional<int> repeats;
  std::optional<std::int64_t> layers, blocks, kv_heads, page_size, head_dim;
  std::optional<std::int32_t> element_size;
  std::vector<std::string> json;
};

void add_plan_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--trace", options.trace, "request trace: Mooncake JSONL or Azure CSV (default: built in)")
      ->type_name("FILE")
      ->group("The plan");
  app.add_option("--from", options.from, "skip requests before this second of the trace")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e12))
      ->group("The plan");
  app.add_option("--to", options.to, "skip requests from this second of the trace on")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e12))
      ->group("The plan");
  app.add_option("--plan", words.planner, "pair: most with fewest tokens; balanced: any PE to any PE")
      ->check(CLI::IsMember({"pair", "balanced"}))
      ->capture_default_str()
      ->group("The plan");
  app.add_option("--tolerance", options.tolerance, "with balanced: do not change PEs within this share of the mean")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("The plan");
  app.add_option("--rounds", words.rounds, "windows of the trace to plan and shuffle; all: until its end")
      ->type_name("N|all")
      ->capture_default_str()
      ->group("The plan");
}

template <typename Number>
void add_dimension(CLI::App& app, const std::string& name, std::optional<Number>& number, std::int64_t least,
                   std::int64_t most, const std::string& text) {
  app.add_option(name, number, text)->check(CLI::Range(least, most))->group("The caches");
}

void add_cache_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--model", options.model, "the caches of this model; list: print all models")
      ->type_name("NAME")
      ->group("The caches");
  app.add_option("--format", words.format, "layout of K and V (apart)")
      ->check(CLI::IsMember({"apart", "by-layer", "interleaved", "by-block", "latent"}))
      ->group("The caches");
  add_dimension(app, "--layers", words.layers, 1, kMostInDimension, "layers (1)");
  add_dimension(app, "--blocks", words.blocks, kFewestBlocks, kMostBlocks,
                "blocks of each layer on each PE (160, or as many as 128 MiB hold)");
  add_dimension(app, "--heads", words.kv_heads, 1, kMostInDimension, "KV heads (8)");
  add_dimension(app, "--page", words.page_size, 2, kMostInDimension, "tokens in a block (64)");
  add_dimension(app, "--head-dim", words.head_dim, 1, kMostInDimension, "elements of one head for one token (128)");
  auto* dtype = app.add_option("--dtype", words.dtype, "type of an element (int8): " + dtype_names());
  auto* size = app.add_option("--element-size", words.element_size, "bytes of an element, instead of --dtype");
  dtype->type_name("TYPE")->group("The caches");
  size->check(CLI::IsMember({1, 2, 4, 8}))->excludes(dtype)->group("The caches");
}

void add_run_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--mode", words.mode, "copy, or move: sources are cleared")
      ->check(CLI::IsMember({"copy", "move"}))
      ->capture_default_str()
      ->group("The shuffles");
  app.add_option("--cores", options.cores, "threads of each PE that copy")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group("The shuffles");
  app.add_option("--path", words.path, "auto: the fastest one; direct; scratch: through two buffers of each core")
      ->check(CLI::IsMember({"auto", "direct", "scratch"}))
      ->capture_default_str()
      ->group("The shuffles");
  app.add_option("--repeats", words.repeats, "shuffles of each round, for measuring (10; --rounds all, --mode move: 1)")
      ->check(CLI::Range(1, 1'000'000))
      ->group("The shuffles");
  app.add_flag("--check", options.check, "compare every byte of every cache with the expected one")
      ->group("The shuffles");
}

void add_result_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--json", words.json, "write the results as JSON to this file, or instead of the text")
      ->expected(0, 1)
      ->type_name("[FILE]")
      ->group("The results");
  app.add_option("--report", options.report, "write a chart of load and imbalance, before and after, as SVG")
      ->type_name("FILE")
      ->group("The results");
}

void add_reference_options(CLI::App& app, Options& options) {
  const char* const group = "Files of Ascend SHMEM's example, in a folder";
  auto* out = app.add_option("--export", options.export_to, "write a round of the trace as such files");
  auto* in = app.add_option("--import", options.import_from, "execute the plan of such files, write the outputs there");
  auto* made =
      app.add_option("--generate", options.generate_in, "write inputs, tables and golden files as the example does");
  for (CLI::Option* const option : {out, in, made}) {
    option->type_name("FOLDER")->group(group);
  }
  made->excludes(in)->excludes(out);
  in->excludes(out);
}

std::string read_rounds(const std::string& word, int& rounds) {
  if (word == "all") {
    rounds = kAllRounds;
    return "";
  }
  if (!CLI::detail::lexical_cast(word, rounds) || rounds < 1 || rounds > 1'000'000) {
    return fmt::format("--rounds {}: must be a number from 1 to 1000000, or all", word);
  }
  return "";
}

template <typename Number>
void take(const std::optional<Number>& given, Number& value) {
  value = given.value_or(value);
}

/// The model's caches or the default ones, changed by the other options.
std::string read_shape(const Words& words, Options& options) {
  Shape& shape = options.shape;
  std::int64_t usual_blocks = kUsualBlocks;
  if (!options.import_from.empty() || !options.generate_in.empty()) {
    shape.page_size = kReferencePage;
  }
  if (!options.model.empty()) {
    const Model* model = find_model(options.model);
    if (model == nullptr) {
      return fmt::format("--model {}: unknown model; the known models are:\n{}", options.model, list_models());
    }
    options.model = model->name;
    shape = model->shape;
    const bool is_latent = shape.format == Format::kLatent;
    if (!words.format.empty() && (words.format == "latent") != is_latent) {
      return fmt::format("--format {}: {} has {}", words.format, model->name,
                         is_latent ? "one latent cache and no V" : "K and V");
    }
  }
  if (!words.format.empty()) {
    shape.format = *format_of(words.format);
  }
  if (!words.dtype.empty()) {
    const auto size = element_size_of(words.dtype);
    if (!size) {
      return fmt::format("--dtype {}: the known types are: {}", words.dtype, dtype_names());
    }
    shape.element_size = *size;
  }
  take(words.element_size, shape.element_size);
  take(words.layers, shape.layers);
  take(words.kv_heads, shape.kv_heads);
  take(words.page_size, shape.page_size);
  take(words.head_dim, shape.head_dim);
  if (!options.generate_in.empty()) {
    usual_blocks = std::max(kReferenceTokens / shape.page_size, kFewestBlocks);
  }
  const std::int64_t in_budget = std::clamp(kBudget / shape.bytes_of_block(), kFewestBlocks, usual_blocks);
  options.blocks_by_budget = !words.blocks && in_budget < usual_blocks;
  shape.blocks = words.blocks.value_or(in_budget);
  if (shape.bytes_of_part() > kMostBytes / (shape.blocks * shape.layers)) {
    return fmt::format("caches of {} layers of {} blocks of {} bytes are more than 1 TiB", shape.layers, shape.blocks,
                       shape.bytes_of_part());
  }
  return "";
}

bool is_reference(const Options& options) {
  return !options.import_from.empty() || !options.export_to.empty() || !options.generate_in.empty();
}

/// The example has one layer, K and V apart, and pairs, and a folder contains one round.
std::string check_reference(const CLI::App& app, Options& options) {
  const std::string option = !options.import_from.empty() ? "--import"
                             : !options.export_to.empty() ? "--export"
                                                          : "--generate";
  if (options.shape.format != Format::kApart || options.shape.layers != 1 || options.planner != Planner::kPair ||
      options.mode != Mode::kCopy) {
    return option + ": those files have one layer (--layers 1), K and V apart, --plan pair and --mode copy";
  }
  if (options.export_to.empty()) {
    for (const char* name : {"--trace", "--from", "--to", "--rounds", "--plan"}) {
      if (app.count(name) > 0) {
        return fmt::format("{} does not go with {}, which has its own plan", name, option);
      }
    }
  }
  if (!options.import_from.empty() && app.count("--blocks") > 0) {
    return "--blocks does not go with --import: the files determine the number of blocks";
  }
  if (app.count("--rounds") > 0 && options.rounds != 1) {
    return "--rounds does not go with --export: a folder holds one round";
  }
  options.rounds = 1;
  return "";
}

/// The error, or "".
std::string read_words(const Words& words, Options& options) {
  if (std::string wrong = read_rounds(words.rounds, options.rounds); !wrong.empty()) {
    return wrong;
  }
  options.planner = words.planner == "pair" ? Planner::kPair : Planner::kBalanced;
  options.path = words.path == "auto" ? Path::kAuto : words.path == "direct" ? Path::kDirect : Path::kScratch;
  options.mode = words.mode == "copy" ? Mode::kCopy : Mode::kMove;
  // Moved blocks cannot be moved again, and a whole trace takes long enough.
  const bool is_once = options.mode == Mode::kMove || options.rounds == kAllRounds;
  options.repeats = words.repeats.value_or(is_once ? 1 : 10);
  if (options.mode == Mode::kMove && options.repeats > 1) {
    return fmt::format("--repeats {}: with --mode move a round can be shuffled once", options.repeats);
  }
  if (options.from && options.to && *options.to <= *options.from) {
    return "--to is not after --from: no request is between them";
  }
  return read_shape(words, options);
}

CommandLine end(int exit_code, const std::string& text) {
  return {.go_on = false, .exit_code = exit_code, .text = text};
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  CLI::App app{
      "Plans how to balance the KV caches of several PEs for a trace of requests, moves the blocks, and measures\n"
      "the speed. Start it with oshrun -n PES [--gba fake] kv_shuffle ...",
      "kv_shuffle"};
  app.formatter(std::make_shared<base::OptionHelp>());
  app.failure_message(base::explain_mistake);
  app.set_version_flag("--version", std::string("kv_shuffle ") + GBA_LIBRARY_VERSION);
  Options options;
  Words words;
  add_plan_options(app, options, words);
  add_cache_options(app, options, words);
  add_run_options(app, options, words);
  add_result_options(app, options, words);
  add_reference_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const bool is_failure = app.exit(error, text, text) != 0;
    return end(is_failure ? 2 : 0, text.str());
  }
  if (options.model == "list") {
    return end(0, list_models());
  }
  if (app.count("--json") > 0) {
    options.json = words.json.empty() ? "" : words.json.front();
  }
  std::string wrong = read_words(words, options);
  if (wrong.empty() && is_reference(options)) {
    wrong = check_reference(app, options);
  }
  return wrong.empty() ? CommandLine{.go_on = true, .options = options} : end(2, "kv_shuffle: " + wrong + "\n");
}

}  // namespace kv_program
