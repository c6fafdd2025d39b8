// SPDX-License-Identifier: Apache-2.0
// The public request traces, which are not in this tree. A test that includes this is built with gba_use_traces.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace test_support {

/// The path of a trace in the folder that the environment variable GBA_TEST_DATA names, or else the variable of CMake.
/// If there is no such file, skip the test with kNoTrace.
inline std::string public_trace(const std::string& name) {
  const char* const folder = std::getenv("GBA_TEST_DATA");
  return std::filesystem::path(folder != nullptr ? folder : GBA_TEST_DATA) / name;
}

inline constexpr const char* kNoTrace = " is not there (GBA_TEST_DATA names the folder with the public traces)";

}  // namespace test_support
