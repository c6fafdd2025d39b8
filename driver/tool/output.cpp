// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace tool {

namespace {

/// Three digits.
std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

}  // namespace

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

namespace {

std::string dump(const Json& json, int indent) {
  Json all{{"schema", kJsonSchema}};
  all.update(json);
  return all.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void print_json(const Json& json) {
  print_text(dump(json, 2));
}

void print_json_line(const Json& json) {
  print_text(dump(json, -1));
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string duration(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) {
    return fmt::format("{} ns", ns);
  }
  if (ns < 1'000'000) {
    return three_digits(value / 1e3) + " us";
  }
  if (ns < 1'000'000'000) {
    return three_digits(value / 1e6) + " ms";
  }
  return three_digits(value / 1e9) + " s";
}

std::string pci_id(unsigned vendor, unsigned device) {
  return fmt::format("{:04x}:{:04x}", vendor, device);
}

namespace {

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kProblem:
      return "problem";
  }
  return "";
}

}  // namespace

std::string to_text(const Finding& finding) {
  constexpr std::size_t kVerdictWidth = 9;
  constexpr std::size_t kNameWidth = 15;
  std::string text =
      fmt::format("{:{}}{:{}}{}\n", name_of(finding.verdict), kVerdictWidth, finding.name, kNameWidth, finding.found);
  if (!finding.fix.empty()) {
    text += fmt::format("{:{}}fix: {}\n", "", kVerdictWidth + kNameWidth, finding.fix);
  }
  return text;
}

Json to_json(const Finding& finding) {
  Json json{{"check", finding.name}, {"verdict", name_of(finding.verdict)}, {"found", finding.found}};
  if (!finding.fix.empty()) {
    json["fix"] = finding.fix;
  }
  return json;
}

std::size_t problems_in(const Findings& findings) {
  return static_cast<std::size_t>(std::count_if(
      findings.begin(), findings.end(), [](const Finding& finding) { return finding.verdict == Verdict::kProblem; }));
}

void FindingPrinter::add(Finding finding) {
  if (!invocation_.json) {
    print_text(to_text(finding));
    std::fflush(stdout);
  }
  findings_.push_back(std::move(finding));
}

int FindingPrinter::conclude(const std::string& device) const {
  if (invocation_.json) {
    return report(invocation_, device, findings_);
  }
  const std::size_t problems = problems_in(findings_);
  print_text(fmt::format("{}: {}\n", device, problems == 0 ? "passed" : count(problems, "problem")));
  return problems == 0 ? kDone : kProblem;
}

int report(const Invocation& invocation, const std::string& device, const Findings& findings) {
  const std::size_t problems = problems_in(findings);
  if (invocation.json) {
    Json checks = Json::array();
    for (const auto& finding : findings) {
      checks.push_back(to_json(finding));
    }
    print_json(Json{{"device", device.empty() ? Json() : Json(device)}, {"ok", problems == 0}, {"checks", checks}});
  } else {
    for (const auto& finding : findings) {
      print_text(to_text(finding));
    }
    const std::string about = device.empty() ? "" : device + ": ";
    print_text(fmt::format("{}{}\n", about, problems == 0 ? "ok" : count(problems, "problem")));
  }
  return problems == 0 ? kDone : kProblem;
}

}  // namespace tool
