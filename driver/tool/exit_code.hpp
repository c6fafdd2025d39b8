// SPDX-License-Identifier: Apache-2.0
// The exit codes of gba, which never change their meaning. gba --help prints this table; gba(1) and
// docs/troubleshooting.md repeat it, and a test compares the three.
#pragma once

#include <array>
#include <string_view>

namespace tool {

enum ExitCode : int {
  kDone = 0,
  kProblem = 1,
  kUsage = 2,
  kCannotOpen = 3,
  kDeviceFailed = 4,
  kOther = 5,
  kPeerFailed = 6,
};

struct ExitCodeText {
  ExitCode code;
  std::string_view text;
};

inline constexpr std::array<ExitCodeText, 7> kExitCodes{{
    {kDone, "Success. For check and selftest: they found no problem."},
    {kProblem, "check or selftest found a problem."},
    {kUsage, "The command line is wrong, or lacks a confirmation, or a variable has an invalid value."},
    {kCannotOpen, "The device cannot be opened: there is none, it is in use, or this user has no permission."},
    {kDeviceFailed, "The device was opened, and then was lost or refused a request."},
    {kOther, "Any other failure, such as output that cannot be written."},
    {kPeerFailed, "The other side of a run with two ports could not be reached, does not fit, or failed."},
}};

}  // namespace tool
