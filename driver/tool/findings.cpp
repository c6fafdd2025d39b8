// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/findings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tool {

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

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

}  // namespace

std::string to_text(const Finding& finding) {
  constexpr std::size_t kVerdictWidth = 9;
  constexpr std::size_t kNameWidth = 15;
  std::string text = padded(name_of(finding.verdict), kVerdictWidth) + padded(finding.name, kNameWidth);
  text += finding.found + "\n";
  if (!finding.mend.empty()) text += std::string(kVerdictWidth + kNameWidth, ' ') + "mend: " + finding.mend + "\n";
  return text;
}

Json to_json(const Finding& finding) {
  Json json{{"check", finding.name}, {"verdict", name_of(finding.verdict)}, {"found", finding.found}};
  if (!finding.mend.empty()) json["mend"] = finding.mend;
  return json;
}

std::size_t problems_in(const Findings& findings) {
  return static_cast<std::size_t>(std::count_if(
      findings.begin(), findings.end(), [](const Finding& finding) { return finding.verdict == Verdict::kProblem; }));
}

int report(const Invocation& invocation, const std::string& device, const Findings& findings) {
  const std::size_t problems = problems_in(findings);
  if (invocation.json) {
    Json checks = Json::array();
    for (const auto& finding : findings) checks.push_back(to_json(finding));
    print_json(Json{{"device", device.empty() ? Json() : Json(device)}, {"ok", problems == 0}, {"checks", checks}});
  } else {
    for (const auto& finding : findings) print_text(to_text(finding));
    print_text((device.empty() ? "" : device + ": ") + (problems == 0 ? "ok" : count(problems, "problem")) + "\n");
  }
  return problems == 0 ? kDone : kProblem;
}

}  // namespace tool
