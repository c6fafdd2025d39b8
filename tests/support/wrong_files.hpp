// SPDX-License-Identifier: Apache-2.0
// Names that a user can give in place of a text file's.
#pragma once

#include <string>
#include <vector>

namespace test_support {

struct WrongFile {
  std::string path;
  std::string problem;  // the text of an error has it after the name
};

/// Files of each kind in `folder`: reading one of them must fail at once. `begin`: how the binary and the large file
/// begin: they are right up to a byte 0, and up to a size.
std::vector<WrongFile> make_wrong_files(const std::string& folder, const std::string& begin = "");

}  // namespace test_support
