// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>

#include "shmem/bootstrap/job_memory.hpp"

namespace shmem::launcher {

namespace {

constexpr const char* kDescription =
    "Runs PROGRAM as the PEs (processing elements) of one job on this machine.\n"
    "PE 0 reads oshrun's standard input. The exit status is that of the first PE that fails, 128 + N for signal N.";

/// The user's arguments, last first as CLI11 wants them, with -np, which it would read as -n p, as --np.
std::vector<std::string> arguments(int argc, const char* const* argv) {
  std::vector<std::string> all(argv + 1, argv + argc);
  for (std::size_t i = 0; i < all.size() && all[i].rfind('-', 0) == 0; ++i) {
    if (all[i] == "-np") all[i] = "--np";
    const bool value_follows =
        all[i] == "--np" || all[i] == "--gba" || all[i] == "--timeout" || all[i] == "-n" || all[i] == "-x";
    if (value_follows) ++i;
  }
  std::reverse(all.begin(), all.end());
  return all;
}

Refusal wrong_usage(const std::string& text) {
  return {kUsageStatus, "oshrun: " + text + "\nTry: oshrun --help\n"};
}

/// "NAME=VALUE", or "NAME" for what it is in our environment.
tl::expected<std::pair<std::string, std::string>, Refusal> parse_export(const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty()) return tl::make_unexpected(wrong_usage("-x " + text + ": NAME or NAME=VALUE is wanted"));
  if (equals != std::string::npos) return std::pair(name, text.substr(equals + 1));
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return tl::make_unexpected(wrong_usage("-x " + name + ": it is not set here; give NAME=VALUE"));
  return std::pair(name, std::string(value));
}

/// CLI11 does not know of the program that follows the options.
class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: oshrun [OPTIONS] PROGRAM [ARGUMENTS]\n";
  }
};

/// What CLI11 fills in.
struct Raw {
  int pes = 1;
  std::string gba;
  double timeout = 0;
  std::vector<std::string> exports;
};

std::function<std::string(const std::string&)> number_check(double least, double most, const std::string& what) {
  return [=](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return {};
    std::ostringstream message;
    message << text << " is not " << what << " from " << least << " to " << most;
    return message.str();
  };
}

void declare(CLI::App& app, Raw& raw) {
  app.formatter(std::make_shared<Help>());
  app.prefix_command();
  app.add_option("-n,--np", raw.pes, "How many PEs (also -np); default 1")
      ->type_name("N")
      ->check(number_check(1, kMaxLocalPes, "a number of PEs"));
  app.add_option("--gba", raw.gba,
                 "fake: a fake device of the job's own; off: software barriers only; PATH: this device. Default: what "
                 "GBA_DEVICE says, then /dev/gba0")
      ->type_name("fake|off|PATH");
  app.add_option("--timeout", raw.timeout, "End the job after this time; the exit status is then 124")
      ->type_name("SECONDS")
      ->check(number_check(1e-3, 1e9, "a number of seconds"));
  app.add_option("-x", raw.exports, "Set a variable in the environment of the PEs; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->take_all()
      ->allow_extra_args(false);
}

tl::expected<Options, Refusal> convert(const Raw& raw, std::vector<std::string> program) {
  if (!program.empty() && program.front() == "--") program.erase(program.begin());
  if (program.empty()) return tl::make_unexpected(wrong_usage("no program to run is named"));
  if (program.front().rfind('-', 0) == 0) {
    return tl::make_unexpected(wrong_usage("there is no option " + program.front()));
  }
  Options options;
  options.pes = raw.pes;
  options.gba = raw.gba;
  if (raw.timeout > 0) {
    options.timeout = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(raw.timeout));
  }
  for (const std::string& text : raw.exports) {
    auto parsed = parse_export(text);
    if (!parsed) return tl::make_unexpected(parsed.error());
    options.exports.push_back(std::move(*parsed));
  }
  options.program = std::move(program);
  return options;
}

}  // namespace

tl::expected<Options, Refusal> parse_options(int argc, const char* const* argv) {
  CLI::App app(kDescription, "oshrun");
  Raw raw;
  declare(app, raw);
  try {
    app.parse(arguments(argc, argv));
  } catch (const CLI::CallForHelp&) {
    return tl::make_unexpected(Refusal{0, app.help()});
  } catch (const CLI::ParseError& error) {
    return tl::make_unexpected(wrong_usage(error.what()));
  }
  return convert(raw, app.remaining());
}

}  // namespace shmem::launcher
