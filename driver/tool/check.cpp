// SPDX-License-Identifier: Apache-2.0
// gba check: can the device be opened, and if not, what mends it.
#include "driver/tool/check.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "driver/tool/sysfs.hpp"
#include "driver/tool/target.hpp"

namespace tool {

namespace {

std::string group_name(gid_t id) {
  const group* const entry = ::getgrgid(id);
  return entry == nullptr ? std::to_string(id) : entry->gr_name;
}

std::string user_name(uid_t id) {
  const passwd* const entry = ::getpwuid(id);
  return entry == nullptr ? std::to_string(id) : entry->pw_name;
}

/// "root:gba 0660".
std::string rights_text(const struct stat& status) {
  std::array<char, 16> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777U);
  return user_name(status.st_uid) + ":" + group_name(status.st_gid) + " " + mode.data();
}

std::string mend_rights(const struct stat& status, const std::string& path) {
  constexpr mode_t kGroupMayUse = S_IRGRP | S_IWGRP;
  if ((status.st_mode & kGroupMayUse) == kGroupMayUse && status.st_gid != 0) {
    return "usermod -a -G " + group_name(status.st_gid) + " " + user_name(::geteuid()) + " (as root), then log in anew";
  }
  if (S_ISSOCK(status.st_mode)) return "chgrp gba " + path + " && chmod 0660 " + path + " (or gba-fake-device --mode)";
  return "install udev/70-gba.rules, then udevadm control --reload && udevadm trigger (as root)";
}

/// The last word: does libgba open it?
Finding check_opens(const std::string& path) {
  const auto device = open_device(path);
  if (!device && device.error().error == -EBUSY) {
    return {.verdict = Verdict::kNote, .name = "opens", .found = "it is in use: " + device.error().text};
  }
  if (!device && device.error().error == -EIO) {
    return {.verdict = Verdict::kProblem,
            .name = "opens",
            .found = device.error().text,
            .mend = "gba reset --yes DEVICE, DEVICE being the privileged port"};
  }
  if (!device) return {.verdict = Verdict::kProblem, .name = "opens", .found = device.error().text};
  if (gba_device_check(device->get()) != 0) {
    return {.verdict = Verdict::kProblem, .name = "opens", .found = gba_error_text()};
  }
  const auto info = info_of(device->get());
  if (!info) return {.verdict = Verdict::kProblem, .name = "opens", .found = info.error().text};
  return {.name = "opens",
          .found = "port " + std::to_string(info->port) + ", " + count(info->groups, "group") + " of up to " +
                   count(info->members, "member") + ", release flags " + flag_place(*info)};
}

Findings check_target(const Target& target) {
  switch (target.kind) {
    case Target::Kind::kSocket:
      return check_socket(target.socket);
    case Target::Kind::kFunction:
      return check_function(target.function);
    case Target::Kind::kNothing:
      break;
  }
  return {{.verdict = Verdict::kProblem, .name = "device", .found = target.problem, .mend = target.mend}};
}

Finding* find_problem(Findings& findings, const std::string& name) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.verdict == Verdict::kProblem && finding.name == name;
  });
  return found == findings.end() ? nullptr : &*found;
}

int check(const Invocation& invocation) {
  const auto target = find_target(invocation.device);
  if (!target) return report(invocation, target.error());
  Findings findings = check_target(*target);
  // Of a made-up tree of devices there is nothing to open.
  const bool can_be_opened = is_this_machine() || target->kind == Target::Kind::kSocket;
  Finding* const memlock = find_problem(findings, kMemlock);
  if (can_be_opened && problems_in(findings) == (memlock == nullptr ? 0 : 1)) {
    const Finding opens = check_opens(target->path);
    // libgba does with less where the device has memory of its own for release flags.
    if (memlock != nullptr && opens.verdict == Verdict::kOk) memlock->verdict = Verdict::kNote;
    findings.push_back(opens);
  }
  return report(invocation, target->path, findings);
}

}  // namespace

Finding check_rights(const std::string& name, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const bool hidden = errno == EACCES;
    return {.verdict = Verdict::kProblem,
            .name = name,
            .found = hidden ? "no right to look into the folder of " + path : "there is no " + path,
            .mend = hidden ? "namei -l " + path + " shows whose folder it is; its owner may chmod a+x it" : ""};
  }
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0) {
    return {.name = name, .found = path + ", " + rights_text(status)};
  }
  return {.verdict = Verdict::kProblem,
          .name = name,
          .found = "user " + user_name(::geteuid()) + " has no rights on " + path + ", " + rights_text(status),
          .mend = mend_rights(status, path)};
}

void declare_check(CLI::App& app, Invocation& invocation) {
  auto* const command = declare(app, invocation, "check", "can a device be opened, and if not, what mends it",
                                [&invocation] { return check(invocation); });
  take_device(*command, invocation);
}

}  // namespace tool
