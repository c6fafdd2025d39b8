// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>

#include "bench/chart.hpp"
#include "bench/scale/comparison.hpp"
#include "bench/scale/footprint.hpp"
#include "bench/scale/markdown.hpp"

namespace scale {
namespace {

constexpr auto kSizes = std::to_array({2, 4, 8, 16, 64, 256, 708, 1416, 4096, 10'000, 100'000});
constexpr auto kSkews = std::to_array({0.0, 100.0, 1e3, 10e3, 100e3, 1e6});

/// Lines without a point are left out: what takes no time has no place on a logarithmic axis.
std::string picture(const std::string& title, const std::string& x_name, std::vector<bench::Line> lines) {
  std::erase_if(lines, [](const bench::Line& line) { return line.points.empty(); });
  if (lines.empty()) throw std::runtime_error("nothing takes any time with these parameters");
  return bench::log_log_chart(title, x_name, "microseconds", lines);
}

/// A table and a picture of all methods over all sizes.
struct Sweep {
  std::string table;
  std::string picture;
};

Sweep sweep(Comparison& comparison, int pes_per_node, const std::string& title, const std::vector<Method>& methods) {
  std::vector<std::string> head{"members"};
  std::vector<bench::Line> lines;
  for (const Method method : methods) {
    head.emplace_back(name_of(method));
    lines.push_back({.name = name_of(method), .points = {}, .dashed = method == Method::kOpenMpi});
  }
  Markdown table(head);
  for (const int members : kSizes) {
    std::vector<std::string> row{std::to_string(members)};
    for (std::size_t i = 0; i < methods.size(); ++i) {
      const auto outcome = comparison.outcome(methods[i], {members, pes_per_node});
      row.push_back(outcome ? rounded(outcome->after_last) : "");
      if (outcome && outcome->after_last > 0) lines[i].points.emplace_back(members, outcome->after_last);
    }
    table.add(row);
  }
  return {table.text(), picture(title, "members", lines)};
}

std::string wins(Comparison& comparison, int node) {
  Markdown table({"members", "PEs per node", "switches", "GBA us", "best software us", "which", "Open MPI us",
                  "software / GBA", "Open MPI / GBA"});
  for (const int pes_per_node : {1, node}) {
    for (const int members : kSizes) {
      if (members <= pes_per_node) continue;
      const Setting setting{members, pes_per_node};
      const double gba = comparison.time(Method::kGba, setting);
      const double mpi = comparison.time(Method::kOpenMpi, setting);
      const BestSoftware best = comparison.best_software(setting);
      table.add({std::to_string(members), std::to_string(pes_per_node), std::to_string(comparison.switches(setting)),
                 rounded(gba), rounded(best.outcome.after_last), name_of(best.method), rounded(mpi),
                 decimal(best.outcome.after_last / gba, 1), decimal(mpi / gba, 1)});
    }
  }
  return table.text();
}

/// Of as many members as a switch has ports, with one each.
Sweep skews(Comparison& comparison, int members) {
  Markdown table({"mean work us", "last comes us", "GBA us", "best software us", "a member is in it: GBA us",
                  "software us", "period: GBA us", "software us", "less time"});
  std::vector<bench::Line> lines{{.name = "GBA", .points = {}},
                                 {.name = "best software", .points = {}},
                                 {.name = "the last one's work", .points = {}, .dashed = true}};
  for (const double skew : kSkews) {
    const Setting setting{members, 1, skew};
    const Outcome gba = *comparison.outcome(Method::kGba, setting);
    const Outcome software = comparison.best_software(setting).outcome;
    const double last = gba.period - gba.after_last;
    table.add({rounded(skew / 1e3), rounded(last), rounded(gba.after_last), rounded(software.after_last),
               rounded(gba.wait), rounded(software.wait), rounded(gba.period), rounded(software.period),
               decimal(100 * (1 - gba.period / software.period), 1) + " %"});
    if (skew == 0) continue;
    lines[0].points.emplace_back(skew / 1e3, gba.period);
    lines[1].points.emplace_back(skew / 1e3, software.period);
    lines[2].points.emplace_back(skew / 1e3, last);
  }
  return {table.text(), picture("Time from barrier to barrier of " + std::to_string(members) + " members",
                                "mean work between barriers, microseconds", lines)};
}

/// How often the best software takes as long as the GBA, by what is not known of either.
std::string unknowns(const Parameters& parameters) {
  const Setting members{static_cast<int>(parameters.ports_per_switch)};
  constexpr auto kMessages = std::to_array({500.0, 1e3, 2e3, 5e3, 20e3});
  std::vector<std::string> head{"round trip of the switch us"};
  for (const double message : kMessages) head.push_back("message " + rounded(message / 1e3) + " us");
  Markdown table(head);
  for (const double trip : {500.0, 1e3, 2e3, 4e3, 8e3}) {
    std::vector<std::string> row{rounded(trip / 1e3)};
    for (const double message : kMessages) {
      if (message < 2 * parameters.network_overhead) {
        row.emplace_back();
        continue;
      }
      Parameters other = parameters;
      other.switch_round_trip = trip;
      other.network_latency = message - 2 * parameters.network_overhead;
      Comparison comparison(other);
      row.push_back(
          decimal(comparison.best_software(members).outcome.after_last / comparison.time(Method::kGba, members), 1));
    }
    table.add(row);
  }
  return table.text();
}

std::string gaps(const Parameters& parameters) {
  const int members = static_cast<int>(parameters.ports_per_switch);
  Markdown table({"a switch that takes arrivals", "GBA of " + std::to_string(members) + " members us"});
  for (const double gap : {0.0, 0.5, 1.0, 2.0, 5.0}) {
    Parameters other = parameters;
    other.switch_arrival_gap = gap;
    table.add({gap == 0 ? "of all ports at once" : "one after the other, " + decimal(gap, 1) + " ns each",
               rounded(Comparison(other).time(Method::kGba, {members}))});
  }
  return table.text();
}

std::string validation(const Parameters& parameters, const std::vector<Measured>& measured) {
  Markdown table({"PEs", "barrier", "least us", "median us", "raw trip us", "base us", "of base", "model", "model is"});
  double sum = 0;
  double worst = 0;
  int count = 0;
  for (const Measured& one : measured) {
    const double model = modelled(one, parameters) / one.base;
    if (model == 0) continue;
    const double error = model / one.ratio - 1;
    table.add({std::to_string(one.pes), one.name, rounded(one.least / 1e3), rounded(one.median / 1e3),
               rounded(one.raw / 1e3), rounded(one.base / 1e3), decimal(one.ratio, 2), decimal(model, 2),
               (error > 0 ? "+" : "") + decimal(100 * error, 0) + " %"});
    const double factor = std::max(model / one.ratio, one.ratio / model);
    sum += std::log(factor);
    worst = std::max(worst, factor);
    ++count;
  }
  if (count == 0) return "Nothing was measured.\n";
  return table.text() + "\nOn average the model is off by a factor of " + decimal(std::exp(sum / count), 2) +
         ", at worst by " + decimal(worst, 2) + ".\n";
}

std::string size_of(double bytes) {
  if (bytes >= 1e12) return rounded(bytes / 1e12) + " TB";
  if (bytes >= 1e9) return rounded(bytes / 1e9) + " GB";
  return bytes >= 1e6 ? rounded(bytes / 1e6) + " MB" : rounded(bytes / 1e3) + " kB";
}

std::string memory(const Parameters& parameters) {
  Markdown table(
      {"members", "own", "a worker of UCX", "each team", "addresses and keys", "if kept once a node: a share"});
  for (const int members : {16, 708, 5664, 10'000, 100'000}) {
    const Footprint bytes = footprint(parameters, members, parameters.pes_per_node);
    table.add({std::to_string(members), size_of(bytes.own), size_of(bytes.network), size_of(bytes.team),
               size_of(bytes.addresses_each), size_of(bytes.addresses)});
  }
  return table.text();
}

std::string startup(const Parameters& parameters) {
  Markdown table({"members", "each PE receives", "unique id: sent by the PE that serves", "at 10 GB/s"});
  for (const int members : {16, 708, 5664, 10'000, 100'000}) {
    const Footprint bytes = footprint(parameters, members, parameters.pes_per_node);
    table.add(
        {std::to_string(members), size_of(bytes.received), size_of(bytes.server), rounded(bytes.server / 10e9) + " s"});
  }
  return table.text();
}

std::string parameter_table(const ParameterFile& file) {
  Markdown table({"parameter", "value", "unit", "source", "what it is", "where the value is from"});
  for (const ParameterLine& line : file.lines) {
    table.add({"`" + line.key + "`", line.value, line.unit, line.source, line.meaning, line.note});
  }
  return table.text();
}

}  // namespace

Document make_document(const ParameterFile& file, const std::vector<Measured>& measured) {
  const Parameters& parameters = file.values;
  const int node = static_cast<int>(parameters.pes_per_node);
  Comparison comparison(parameters);
  const Sweep flat =
      sweep(comparison, 1, "Barriers of members that have a port each, no skew",
            {Method::kGba, Method::kRadix, Method::kDissemination, Method::kRecursiveDoubling, Method::kTournament,
             Method::kCentralCounter, Method::kBasic, Method::kPull, Method::kOpenMpi});
  const Sweep nodes =
      sweep(comparison, node, "Barriers of PEs, " + std::to_string(node) + " of which share a port, no skew",
            {Method::kGba, Method::kNodeRadix, Method::kNodeDissemination, Method::kRadix, Method::kDissemination,
             Method::kRecursiveDoubling, Method::kTournament, Method::kCentralCounter, Method::kOpenMpi});
  const Sweep skew = skews(comparison, static_cast<int>(parameters.ports_per_switch));
  return {{{"flat", flat.table},
           {"nodes", nodes.table},
           {"wins", wins(comparison, node)},
           {"skew", skew.table},
           {"unknowns", unknowns(parameters)},
           {"gaps", gaps(parameters)},
           {"validation", validation(parameters, measured)},
           {"memory", memory(parameters)},
           {"startup", startup(parameters)},
           {"parameters", parameter_table(file)}},
          {{"flat.svg", flat.picture}, {"nodes.svg", nodes.picture}, {"skew.svg", skew.picture}}};
}

std::string filled(const std::string& page, const std::map<std::string, std::string>& tables) {
  const std::string begin = "<!-- bench_scale ";
  const std::string begin_end = " -->\n";
  const std::string end = "<!-- end -->";
  std::string text;
  std::set<std::string> placed;
  std::size_t at = 0;
  for (std::size_t mark = page.find(begin); mark != std::string::npos; mark = page.find(begin, at)) {
    const std::size_t name_at = mark + begin.size();
    const std::size_t body = page.find(begin_end, name_at);
    const std::size_t close = page.find(end, name_at);
    if (body == std::string::npos || close == std::string::npos || close < body) {
      throw std::runtime_error("a place for a table has no \"" + end + "\" behind it");
    }
    const std::string name = page.substr(name_at, body - name_at);
    const auto table = tables.find(name);
    if (table == tables.end()) throw std::runtime_error("there is no table " + name);
    text += page.substr(at, body + begin_end.size() - at) + table->second;
    placed.insert(name);
    at = close;
  }
  for (const auto& [name, table] : tables) {
    if (!placed.contains(name)) throw std::runtime_error("table " + name + " has no place on the page");
  }
  return text + page.substr(at);
}

}  // namespace scale
