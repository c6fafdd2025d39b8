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

/// The same for a folder of Unix sockets, whose paths must be short enough. Removes sockets named "shmem-..." that
/// processes left behind when they were killed.
Result<void> prepare_for_sockets(const std::string& folder, const char* whose);

}  // namespace base
