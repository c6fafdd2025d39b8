// SPDX-License-Identifier: Apache-2.0
// gba report: one text that says all about a device and its machine, to attach to a bug.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/fd.hpp"
#include "driver/tool/bug_report.hpp"
#include "driver/tool/device.hpp"
#include "driver/tool/group_view.hpp"

namespace tool {
namespace {

std::string text_of(const BugReport& bug_report, const std::string& time) {
  std::string text = fmt::format("gba report of {}, libgba {}\n", time, gba_version());
  for (const auto& section : bug_report.sections()) {
    text += fmt::format("\n==== {} ====\n{}", section.title, section.text);
  }
  text += "\n==== what could not be read ====\n";
  for (const auto& line : bug_report.not_read()) {
    text += line + "\n";
  }
  return text + (bug_report.not_read().empty() ? "everything could be read\n" : "");
}

Json json_of(const BugReport& bug_report, const std::string& time) {
  Json sections = Json::array();
  for (const auto& section : bug_report.sections()) {
    sections.push_back({{"title", section.title}, {"text", section.text}});
  }
  return {{"time", time}, {"version", gba_version()}, {"sections", sections}, {"not_read", bug_report.not_read()}};
}

Failure cannot_write(const std::string& file) {
  return {-errno,
          fmt::format("gba: cannot write {}: {}{}", file, std::strerror(errno),
                      errno == EEXIST ? "; remove it, or choose another name" : ""),
          kOther};
}

/// A new file that only this user may read: an old one, or a link of another user, is left alone.
Result<base::UniqueFd> create(const std::string& file) {
  base::UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) {
    return cannot_write(file);
  }
  return fd;
}

int report_bug(const Invocation& invocation, const std::string& file) {
  base::UniqueFd out;
  if (!file.empty()) {
    auto created = create(file);
    if (!created) {
      return report(invocation, created.error());
    }
    out = *std::move(created);
  }
  BugReport bug_report;
  add_system(bug_report);
  add_device(bug_report, invocation.device);
  add_errors(bug_report);
  const std::string time = utc_time(std::time(nullptr));
  if (out) {
    // The file is text, whatever standard output is.
    const std::string text = text_of(bug_report, time);
    if (::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return report(invocation, cannot_write(file));
    }
    if (invocation.json) {
      print_json(Json{{"file", file}, {"not_read", bug_report.not_read()}});
    } else {
      print_text(
          fmt::format("{} is written; {} could not be read\n", file, count(bug_report.not_read().size(), "item")));
    }
  } else if (invocation.json) {
    print_json(json_of(bug_report, time));
  } else {
    print_text(text_of(bug_report, time));
  }
  return kDone;
}

}  // namespace

void declare_report(CLI::App& app, Invocation& invocation) {
  const auto file = std::make_shared<std::string>();
  auto command = declare(app, invocation, "report", "all about a device and its machine, to attach to a bug",
                         [&invocation, file] { return report_bug(invocation, *file); });
  take_device(command, invocation);
  command.text("--output", *file, "a new file for it (default: standard output)", "FILE");
}

}  // namespace tool
