// SPDX-License-Identifier: Apache-2.0
// What goes into gba report: sections of text, and what could not be read.
#pragma once

#include <string>
#include <vector>

namespace tool {

struct Section {
  std::string title;
  std::string text;
};

class BugReport {
 public:
  /// A section without a text is not worth one.
  void add(const std::string& title, const std::string& text);
  void could_not_read(const std::string& what, const std::string& why);

  [[nodiscard]] const std::vector<Section>& sections() const { return sections_; }
  /// "kernel messages: Operation not permitted".
  [[nodiscard]] const std::vector<std::string>& not_read() const { return not_read_; }

 private:
  std::vector<Section> sections_;
  std::vector<std::string> not_read_;
};

/// The versions, the processors, the IOMMU, the limits, the variables (without secrets).
void add_system(BugReport& report);
/// The functions that are plugged in, and the device: what gba check, info, groups and regs say of it.
void add_device(BugReport& report, const std::string& device);
/// What the kernel says: its messages on VFIO, IOMMU and PCI errors, and the error counters of the functions.
void add_errors(BugReport& report);

}  // namespace tool
