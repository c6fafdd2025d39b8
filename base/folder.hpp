// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace base {

/// The names in a folder, sorted; none if it cannot be read. Throws std::bad_alloc, with which the iterators of
/// std::filesystem would end the process.
std::vector<std::string> names_in(const std::string& folder);

/// Makes the folder, of `whose`, unless it exists. An Error, which names both, if it is not this user's, or if another
/// user may write to it.
Result<void> check_own_folder(const std::string& folder, const char* whose);

/// The same for Unix sockets, whose paths must not be too long. Removes those with the prefix "shmem-" that nobody
/// has, of processes that were killed.
Result<void> prepare_for_sockets(const std::string& folder, const char* whose);

}  // namespace base
