// SPDX-License-Identifier: Apache-2.0
// One line about the PEs that ended after the one that was the cause.
#pragma once

#include <string>
#include <vector>

#include "shmem/bootstrap/end_reports.hpp"

namespace shmem::launcher {

/// What waited and for whom, in the report of a wait.
struct WaitReport {
  std::string waiter;  // "": the PE was in no call
  std::string message;
};
WaitReport wait_report(const PeEnd& end);

/// Lines about the ends that are reports: "15 other PEs waited in barrier 3 of team 0", "2 other PEs failed, too: ...".
/// `cause`: the message of the PE that was the cause; "": no PE was, so that the lines say for whom the PEs waited.
std::vector<std::string> about_others(const std::vector<PeEnd>& others, const std::string& cause);

}  // namespace shmem::launcher
