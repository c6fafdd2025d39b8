// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace base {

/// The names in a folder, sorted; none if it cannot be read. Throws std::bad_alloc, with which the iterators of
/// std::filesystem would end the process.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace base
