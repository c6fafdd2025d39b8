// SPDX-License-Identifier: Apache-2.0
// The tree that these tests examine.
#pragma once

#include <filesystem>
#include <string>

namespace scripts_test {

inline const std::filesystem::path kTree = GBA_SOURCE_DIR;

inline std::string in_tree(const std::string& path) {
  return kTree / path;
}

}  // namespace scripts_test
