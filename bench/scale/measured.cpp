// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/measured.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "bench/scale/play.hpp"
#include "shmem/table_text.hpp"

namespace scale {
namespace {

constexpr const char* kFormat = "bench-scale-measured 1";
constexpr int kBarriers = 200;

std::optional<Method> method_called(std::string_view name) {
  struct Called {
    std::string_view name;
    Method method;
  };
  constexpr auto kNames = std::to_array<Called>({{"central_counter", Method::kCentralCounter},
                                                 {"basic", Method::kBasic},
                                                 {"npu_v1", Method::kDissemination},
                                                 {"dissemination", Method::kDissemination},
                                                 {"npu_v2", Method::kRadix},
                                                 {"npu_v3", Method::kPull},
                                                 {"recursive_doubling", Method::kRecursiveDoubling},
                                                 {"tournament", Method::kTournament},
                                                 {"hierarchical", Method::kNodeDissemination},
                                                 {"MPI_Barrier (Open MPI)", Method::kOpenMpi}});
  const auto* const found = std::ranges::find(kNames, name, &Called::name);
  return found != kNames.end() ? std::optional(found->method) : std::nullopt;
}

}  // namespace

std::string text_of(const std::vector<Measured>& all) {
  std::string text =
      "# Written by bench_scale --measure: PEs, processors, then in nanoseconds least, median, raw round trip of a "
      "cache\n"
      "# line, base (the round trip, or the time in which each PE has given way once), median ratio to that, and "
      "what.\n" +
      std::string(kFormat) + "\n";
  for (const Measured& one : all) {
    std::array<char, 200> line{};
    std::snprintf(line.data(), line.size(), "%4d %3d %10.1f %10.1f %8.1f %9.1f %7.3f %s\n", one.pes, one.processors,
                  one.least, one.median, one.raw, one.base, one.ratio, one.name.c_str());
    text += line.data();
  }
  return text;
}

std::vector<Measured> read_measured(const std::string& name, const std::string& text) {
  std::vector<Measured> all;
  const auto take = [&all](int /*line*/, const std::string& content) -> std::string {
    Measured one;
    std::istringstream in(content);
    in >> one.pes >> one.processors >> one.least >> one.median >> one.raw >> one.base >> one.ratio >> std::ws;
    std::getline(in, one.name);
    if (!in || one.pes < 2 || one.processors < 1 || one.raw <= 0 || one.base <= 0 || one.ratio <= 0) {
      return "not PEs, processors, least, median, raw, base, ratio and a name";
    }
    all.push_back(one);
    return "";
  };
  const auto lines = shmem::read_table({name, "measured barriers", kFormat}, text, take);
  if (!lines) throw std::runtime_error(lines.error().text);
  return all;
}

double modelled(const Measured& what, Parameters parameters) {
  const auto method = method_called(what.name);
  if (!method) return 0;
  const Layout layout{.members = what.pes, .pes_per_node = what.pes, .radix = static_cast<int>(parameters.radix)};
  const auto program = make_program(*method, layout);
  parameters.line_round_trip = what.raw;
  if (what.pes <= what.processors) {
    return 1000 * play(*program, parameters, layout, {}, kBarriers, *method == Method::kOpenMpi).period;
  }
  const double context_switch = what.base * what.processors / what.pes;
  return 1000 * play_crowded(*program, parameters, what.processors, context_switch, kBarriers);
}

}  // namespace scale
