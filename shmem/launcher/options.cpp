// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <sstream>

#include "base/number.hpp"
#include "base/option_help.hpp"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/launcher/other_launchers.hpp"
#include "shmem/version.hpp"
#include "uapi/gba_device.h"

namespace shmem::launcher {

namespace {

using Arguments = std::vector<std::string>;
using Check = std::function<std::string(const std::string&)>;

constexpr const char* kDescription =
    "Runs PROGRAM as the PEs (processing elements) of one job, on this machine or on the hosts of -H or --hostfile;\n"
    "after each \":\" may follow another program with options of its own. On one node, PE 0 reads oshrun's standard "
    "input.\n"
    "The exit status is that of the first PE that fails, 128 + N for signal N.";

constexpr std::array kOptionsWithValue = {"-n",      "--np",   "-x",        "--wdir",    "--gba",
                                          "--ports", "--bind", "--grace",   "--timeout", "--restart",
                                          "--rsh",   "--part", "--debugger"};
/// Runs a command on another node. It must not ask for a password: oshrun starts several at once.
constexpr const char* kRsh = "ssh -x -o BatchMode=yes";
constexpr const char* kRshVariable = "SHMEM_RSH";
/// The defaults of --profile and --valgrind.
constexpr const char* kProfile = "shmem_profile";
constexpr const char* kValgrind = "shmem_valgrind";

int values_of(const std::string& option) {
  const bool has_value =
      std::find(kOptionsWithValue.begin(), kOptionsWithValue.end(), option) != kOptionsWithValue.end();
  return has_value ? 1 : values_of_other_launchers(option);
}

/// One program's part of the command line, in reverse as CLI11 wants it, with -np, which it would read as -n p, as
/// --np, and so on.
Arguments for_parser(Arguments part) {
  for (std::size_t i = 0; i < part.size() && part[i].rfind('-', 0) == 0; ++i) {
    part[i] = part[i] == "-np" ? "--np" : with_two_dashes(part[i]);
    i += static_cast<std::size_t>(values_of(part[i]));
  }
  std::reverse(part.begin(), part.end());
  return part;
}

/// The parts between the arguments ":".
std::vector<Arguments> split(const Arguments& all) {
  std::vector<Arguments> parts(1);
  for (const std::string& argument : all) {
    if (argument == ":") {
      parts.emplace_back();
    } else {
      parts.back().push_back(argument);
    }
  }
  return parts;
}

Refusal wrong_usage(const std::string& text) {
  return {kUsageStatus, "oshrun: " + text + "\nTry: oshrun --help\n"};
}

/// "NAME=VALUE", or "NAME" for its value in oshrun's environment.
base::Result<std::pair<std::string, std::string>, Refusal> parse_export(const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty()) {
    return wrong_usage("-x " + text + ": NAME or NAME=VALUE is wanted");
  }
  if (equals != std::string::npos) {
    return std::pair(name, text.substr(equals + 1));
  }
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) {
    return wrong_usage("-x " + name + ": it is not set here; give NAME=VALUE");
  }
  return std::pair(name, std::string(value));
}

/// CLI11 does not know about the program after the options.
class Help : public base::OptionHelp {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: oshrun [OPTIONS] PROGRAM [ARGUMENTS] [: [-n N] [-x ...] [--wdir DIR] PROGRAM [ARGUMENTS]]...\n";
  }
  /// Without the braces in which CLI11 shows the value of an option that needs none.
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, positional);
    return name.substr(0, name.find('{'));
  }
};

/// Filled in by CLI11.
struct Raw {
  Options job;
  Program program;
  Arguments exports;
  OtherLaunchers others;
  std::string rsh;
  std::string debugger;
  std::string part;
  std::string bind = "none";
  double grace = 1;
  double timeout = 0;
};

Check number_check(double least, double most, const std::string& what) {
  return [=](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) {
      return {};
    }
    return fmt::format("{} is not {} from {:g} to {:g}", text, what, least, most);
  };
}

/// A misspelt word must not be taken for a path.
std::string check_gba(const std::string& text) {
  if (text == "fake" || text == "off" || text == "require") {
    return {};
  }
  const bool names_device = text.find_first_of("/:@") != std::string::npos || ::access(text.c_str(), F_OK) == 0;
  return names_device ? std::string() : text + " is not fake, off, require or the path of a device";
}

std::string check_bind(const std::string& text) {
  return bind_of(text) ? std::string() : text + " is not none, core or numa";
}

/// The options of each program.
void declare_program(CLI::App& app, Raw& raw) {
  app.add_option("-n,--np", raw.program.pes, "How many PEs (also -np); default 1")
      ->type_name("N")
      ->check(number_check(1, kMaxLocalPes, "a number of PEs"));
  app.add_option("-x", raw.exports, "Set a variable in the environment of the PEs; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--wdir", raw.program.folder, "Run the program in this folder")->type_name("DIR");
}

/// The options before the first program only.
void declare_job(CLI::App& app, Raw& raw) {
  app.add_option("--gba", raw.job.gba,
                 "fake: a fake device of the job's own; off: software barriers only; require: no job without a "
                 "device; PATH: this device. Default: what GBA_DEVICE says, then /dev/gba0")
      ->type_name("fake|off|require|PATH")
      ->check(check_gba);
  app.add_option("--ports", raw.job.ports,
                 "How many ports of the switch the fake device has, which the PEs share; default one for each PE")
      ->type_name("M")
      ->check(number_check(1, GBA_MAX_MEMBERS, "a number of ports"));
  app.add_option("--bind", raw.bind, "Keep each PE on one core, or on the cores of one NUMA node; default none")
      ->type_name("none|core|numa")
      ->check(check_bind);
  app.add_flag("--report-bindings", raw.job.report_bindings, "Say on which processors each PE runs");
  app.add_flag("--tag-output", raw.job.tag_output, "Begin each line that a PE prints with [PE]");
  app.add_flag("--direct-output", raw.job.direct_output,
               "Let PEs write to oshrun's output themselves: lines of PEs may mix");
  app.add_option("--grace", raw.grace,
                 "How long PEs get to end once one has failed, before SIGTERM, and then before SIGKILL; default 1")
      ->type_name("SECONDS")
      ->check(number_check(0, 1e6, "a number of seconds"));
  app.add_option("--timeout", raw.timeout, "End the job after this time; the exit status is then 124")
      ->type_name("SECONDS")
      ->check(number_check(1e-3, 1e9, "a number of seconds"));
  app.add_option("--debugger", raw.debugger,
                 "Run PEs in this debugger, gdb: at a terminal PE 0, or the one PE that is named; else all, or those "
                 "that are named (0,3-5), which print where they fail")
      ->type_name("GDB[:PES]")
      ->check([](const std::string& text) {
        return debugger_of(text) ? std::string() : text + " is not a program, or a program, a colon and numbers of PEs";
      });
  app.add_flag(fmt::format("--valgrind{{{}}}", kValgrind), raw.job.valgrind,
               "Run each PE under valgrind, which writes its report to PREFIX.PE.log; options: VALGRIND_OPTS")
      ->type_name("[=PREFIX]");
  app.add_flag(fmt::format("--profile{{{}}}", kProfile), raw.job.profile,
               "Count calls, bytes and times of all PEs, and write a report to PREFIX.txt and a picture of the bytes "
               "between PEs to PREFIX.svg")
      ->type_name("[=PREFIX]");
  app.add_option(
         "--restart", raw.job.restarts,
         "Start the program of a PE that dies again, up to N times, in a job that goes on without it; default 0")
      ->type_name("N")
      ->check(number_check(0, 1e9, "a number of times"));
  app.add_option(
         "--rsh", raw.rsh,
         std::string("The program, with options, that runs a command on another host; default: SHMEM_RSH, else ") +
             kRsh)
      ->type_name("COMMAND");
  // Given by another oshrun that starts this one:
  app.add_option("--part", raw.part)->group("");
  app.add_flag("--hold", raw.job.hold)->group("");
  app.set_version_flag("-V,--version", fmt::format("oshrun: libshmem {}, OpenSHMEM 1.6", kVersion));
  declare_other_launchers(app, raw.others);
}

base::Result<Program, Refusal> convert(const Raw& raw, Arguments command, bool is_first) {
  if (!command.empty() && command.front() == "--") {
    command.erase(command.begin());
  }
  if (command.empty()) {
    return wrong_usage("no program to run is named");
  }
  if (command.front().rfind('-', 0) == 0) {
    return wrong_usage("there is no option " + command.front() +
                       (is_first ? "" : " here (after \":\" only -n, -x and --wdir)"));
  }
  Program program = raw.program;
  for (const std::string& text : raw.exports) {
    auto parsed = parse_export(text);
    if (!parsed) {
      return parsed.error();
    }
    program.exports.push_back(std::move(*parsed));
  }
  program.command = std::move(command);
  return program;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

std::vector<std::string> rsh_of(const std::string& given) {
  const char* variable = std::getenv(kRshVariable);
  auto words = words_of(!given.empty() ? given : (variable != nullptr ? variable : ""));
  return words.empty() ? words_of(kRsh) : words;
}

/// "FIRST/TOTAL"
std::optional<NodePart> part_of(std::string_view text) {
  const auto first = base::take_number<int>(text);
  const auto total = base::take(text, '/') ? base::number<int>(text) : std::nullopt;
  return first && total && *first >= 0 && *first < *total ? std::optional(NodePart{*first, *total}) : std::nullopt;
}

Options job_options(const Raw& raw) {
  Options options = raw.job;
  const std::string& bind = raw.others.bind_to.empty() ? raw.bind : raw.others.bind_to;
  options.bind = *bind_of(bind.substr(0, bind.find(':')));
  options.grace = milliseconds_of(raw.grace);
  options.rsh = rsh_of(raw.rsh);
  if (!raw.debugger.empty()) {
    options.debugger = debugger_of(raw.debugger);
  }
  options.part = part_of(raw.part);
  if (raw.timeout > 0) {
    options.timeout = milliseconds_of(raw.timeout);
  }
  return options;
}

/// Reads one part; the first one contains the options of the job.
base::Result<Program, Refusal> parse_part(Arguments part, Options* job, OtherLaunchers* others) {
  CLI::App app(kDescription, "oshrun");
  Raw raw;
  app.formatter(std::make_shared<Help>());
  app.prefix_command();
  declare_program(app, raw);
  if (job != nullptr) {
    declare_job(app, raw);
  }
  try {
    app.parse(for_parser(std::move(part)));
  } catch (const CLI::CallForHelp&) {
    return Refusal{0, app.help()};
  } catch (const CLI::CallForVersion& version) {
    return Refusal{0, std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return wrong_usage(error.what());
  }
  if (job != nullptr) {
    *job = job_options(raw);
    job->variables = variables_of(raw.others);
    const int asked = pes_asked_for(raw.others);
    raw.program.pes = app.count("--np") == 0 && asked != 0 ? asked : raw.program.pes;
    *others = raw.others;
  }
  return convert(raw, app.remaining(), job != nullptr);
}

}  // namespace

int Options::pes() const {
  return std::accumulate(programs.begin(), programs.end(), 0,
                         [](int sum, const Program& program) { return sum + program.pes; });
}

namespace {

/// Chooses the nodes of the PEs. "" or what is wrong.
std::string place(Options& options, const OtherLaunchers& others) {
  auto nodes = nodes_of(others, options.pes());
  if (!nodes) {
    return nodes.error().text;
  }
  const bool is_here = std::ranges::all_of(*nodes, [](const NodePes& node) { return is_this_machine(node.host); });
  if (is_here) {
    return "";
  }
  if (others.map_by.starts_with("node")) {
    return "--map-by " + others.map_by +
           " is not available: PEs fill the nodes in their order, and -N says how many each takes";
  }
  options.nodes = *std::move(nodes);
  if (options.gba == "fake") {
    return "--gba fake is for jobs on one node: start a gba-fake-device on each node, and give its path";
  }
  if (options.restarts > 0) {
    return "--restart is for jobs on one node";
  }
  return options.direct_output ? "--direct-output is for jobs on one node" : "";
}

}  // namespace

base::Result<Options, Refusal> parse_options(int argc, const char* const* argv) {
  Options options;
  OtherLaunchers others;
  std::vector<Program> programs;
  for (Arguments& part : split(Arguments(argv + 1, argv + argc))) {
    auto program = parse_part(std::move(part), programs.empty() ? &options : nullptr, &others);
    if (!program) {
      return program.error();
    }
    programs.push_back(std::move(*program));
  }
  for (Program& program : programs) {
    program.exports.insert(program.exports.begin(), options.variables.begin(), options.variables.end());
  }
  options.programs = std::move(programs);
  if (options.ports > 0 && options.gba != "fake") {
    return wrong_usage("--ports is for --gba fake: other devices have the ports that they have");
  }
  if (options.tag_output && options.direct_output) {
    return wrong_usage("--tag-output and --direct-output exclude each other");
  }
  if (options.debugger && !options.valgrind.empty()) {
    return wrong_usage("--debugger and --valgrind exclude each other");
  }
  // Each number is bounded before the sum can overflow.
  if (options.programs.size() > kMaxLocalPes || options.pes() > kMaxLocalPes) {
    return wrong_usage(fmt::format("the programs together have more than {} PEs", kMaxLocalPes));
  }
  if (const std::string problem = place(options, others); !problem.empty()) {
    return wrong_usage(problem);
  }
  return options;
}

}  // namespace shmem::launcher
