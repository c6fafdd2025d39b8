// SPDX-License-Identifier: Apache-2.0
// Text and JSON on standard output, and what check and selftest found, a line each.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "driver/tool/invocation.hpp"

#include "base/size_text.hpp"

namespace tool {

using Json = nlohmann::ordered_json;

void print_text(const std::string& text);
/// The form of all that gba prints as JSON, which is in the member "schema" of each object. It changes when a member is
/// removed, or changes its name, type or meaning; not when one is added.
constexpr int kJsonSchema = 1;

/// On several lines; on one line if there is one object after the other.
void print_json(const Json& json);
void print_json_line(const Json& json);

/// Columns as wide as needed, two blanks between them.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// "34.2 s", "7.25 us".
std::string duration(std::uint64_t ns);
/// "1eaf:0b01".
std::string pci_id(unsigned vendor, unsigned device);
using base::count;

enum class Verdict { kOk, kNote, kProblem };  // a note: something optional, or skipped

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string name = {};  // of what was looked at
  std::string found = {};
  std::string fix = {};  // of a problem: the command
};

using Findings = std::vector<Finding>;

/// Prints them for `device` ("" if there is none) and returns the exit code: kDone if nothing is a problem.
int report(const Invocation& invocation, const std::string& device, const Findings& findings);
/// Prints findings as they come, or with --json all at the end.
class FindingPrinter {
 public:
  explicit FindingPrinter(const Invocation& invocation) : invocation_(invocation) {}

  void add(Finding finding);
  [[nodiscard]] const Findings& findings() const { return findings_; }
  /// The last line, on the device that libgba calls so. Returns the exit code.
  int conclude(const std::string& device) const;

 private:
  const Invocation& invocation_;
  Findings findings_;
};

/// One line, or two with the command that fixes it.
std::string to_text(const Finding& finding);
Json to_json(const Finding& finding);
std::size_t problems_in(const Findings& findings);

}  // namespace tool
