// SPDX-License-Identifier: Apache-2.0
// Barriers of 2 to 100,000 members, by a model: prints the tables of docs/scaling.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/option_help.hpp"
#include "tools/scale/model.hpp"

namespace scale {
namespace {

constexpr auto kSizes = std::to_array({2, 4, 8, 16, 64, 256, 708, 1416, 4096, 10'000, 100'000});
/// In npu_v3 every member signals every other one: n^2 messages.
constexpr int kMostPullers = 708;

std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    throw std::system_error(errno, std::generic_category(), "cannot read " + file);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

/// With three significant digits.
std::string rounded(double value) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

/// A table in Markdown: a row for each number of members, a column for each method, and the time of the best software
/// relative to the GBA. The first method is the GBA's, the last one Open MPI's.
std::string table(const Parameters& parameters, int pes_per_node, const std::vector<Method>& methods) {
  std::string text = "| members |";
  std::string rule = "|---:|";
  for (const Method method : methods) {
    text += fmt::format(" {} |", name_of(method));
    rule += "---:|";
  }
  text += " best software / GBA |\n" + rule + "---:|\n";
  for (const int members : kSizes) {
    text += fmt::format("| {} |", members);
    double gba = 0;
    double best = 0;
    for (const Method method : methods) {
      if (method == Method::kPull && members > kMostPullers) {
        text += "  |";
        continue;
      }
      const double time = time_of(method, parameters, members, pes_per_node);
      text += fmt::format(" {} |", rounded(time));
      if (method == Method::kGba) {
        gba = time;
      } else if (method != Method::kOpenMpi) {
        best = best == 0 ? time : std::min(best, time);
      }
    }
    text += gba > 0 ? fmt::format(" {:.1f} |\n", best / gba) : "  |\n";
  }
  return text;
}

std::vector<std::string> all_tables(const Parameters& parameters) {
  return {table(parameters, 1,
                {Method::kGba, Method::kRadix, Method::kDissemination, Method::kRecursiveDoubling, Method::kTournament,
                 Method::kCentralCounter, Method::kBasic, Method::kPull, Method::kOpenMpi}),
          table(parameters, static_cast<int>(parameters.pes_per_node),
                {Method::kGba, Method::kNodeRadix, Method::kNodeDissemination, Method::kRadix, Method::kDissemination,
                 Method::kRecursiveDoubling, Method::kTournament, Method::kCentralCounter, Method::kOpenMpi})};
}

int run(int argc, char** argv) {
  CLI::App app("Computes the time of barriers of 2 to 100,000 members by a model, in microseconds.", "bench_scale");
  app.formatter(std::make_shared<base::OptionHelp>());
  app.failure_message(base::explain_mistake);
  std::string file = SCALE_PARAMETERS;
  std::string page;
  app.add_option("--parameters", file, "file of the costs that the model assumes")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--check", page, "only fail if this page does not have the tables")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  const Parameters parameters = read_parameters(file, contents_of(file));
  const std::vector<std::string> tables = all_tables(parameters);
  if (!page.empty()) {
    const std::string text = contents_of(page);
    for (const std::string& each : tables) {
      if (text.find(each) == std::string::npos) {
        throw std::runtime_error(fmt::format("{} does not have this table:\n{}", page, each));
      }
    }
    return 0;
  }
  std::printf("Microseconds; each member has a port and a network interface of its own:\n\n%s\n", tables[0].c_str());
  std::printf("%.0f PEs on each node share them:\n\n%s", parameters.pes_per_node, tables[1].c_str());
  return 0;
}

}  // namespace
}  // namespace scale

int main(int argc, char** argv) try { return scale::run(argc, argv); } catch (const std::exception& error) {
  std::fprintf(stderr, "bench_scale: %s\n", error.what());
  return 1;
}
