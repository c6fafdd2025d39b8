// SPDX-License-Identifier: Apache-2.0
// A machine without hardware where the packaged service of gba-fake-device runs: there is a /dev/gba0.
#pragma once

#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace test_support {

/// Runs a program where /dev and /run are its own, with what the package of gba-fake-device puts there. The exit code
/// is 77 if this machine cannot do that; the output then says why.
/// `environment` may have GBA_TEST_NOT_STARTED=1: the package is installed, but its service does not run.
inline Outcome run_with_service(const std::vector<std::string>& command,
                                const std::vector<std::string>& environment = {}, Seconds limit = Seconds{120}) {
  std::vector<std::string> line{WITH_SERVICE, FAKE_DEVICE_UNIT, FAKE_DEVICE_TMPFILES,
                                program("gba-fake-device").substr(0, program("gba-fake-device").rfind('/'))};
  line.insert(line.end(), command.begin(), command.end());
  return run(line, environment, limit);
}

}  // namespace test_support
