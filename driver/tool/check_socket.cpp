// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <cerrno>

#include "driver/tool/check.hpp"

namespace tool {

Findings check_socket(const std::string& socket) {
  if (socket.starts_with('@')) return {{.name = "socket", .found = socket + ", an abstract name"}};
  struct stat status {};
  const std::string serve = "gba-fake-device --socket " + socket;
  if (::stat(socket.c_str(), &status) != 0 && errno != EACCES) {
    return {{.verdict = Verdict::kProblem, .name = "socket", .found = "there is no " + socket, .mend = serve}};
  }
  if (status.st_mode != 0 && !S_ISSOCK(status.st_mode)) {
    return {{.verdict = Verdict::kProblem,
             .name = "socket",
             .found = socket + " is no socket",
             .mend = serve + " (where nothing is yet)"}};
  }
  return {check_rights("socket", socket)};
}

}  // namespace tool
