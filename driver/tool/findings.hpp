// SPDX-License-Identifier: Apache-2.0
// What check and selftest found out, a line each.
#pragma once

#include <string>
#include <vector>

#include "driver/tool/device.hpp"

namespace tool {

enum class Verdict { kOk, kNote, kProblem };  // a note is no problem: something optional, or left out

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string name = {};  // of what was looked at
  std::string found = {};
  std::string mend = {};  // of a problem: the command
};

using Findings = std::vector<Finding>;

/// Prints them for `device` ("" where there is none) and gives the exit code: kDone if nothing is a problem.
int report(const Invocation& invocation, const std::string& device, const Findings& findings);
/// One line, or two with the command that mends it.
std::string to_text(const Finding& finding);
Json to_json(const Finding& finding);
std::size_t problems_in(const Findings& findings);

}  // namespace tool
