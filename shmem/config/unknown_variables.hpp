// SPDX-License-Identifier: Apache-2.0
// Variables that look like libshmem's and are not: without a word about them a typing error would go unnoticed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shmem {

/// A line about each variable of `environment`, which is as environ, that begins with SHMEM_ and is not libshmem's, if
/// its name is nearly that of one of libshmem's, or it is another OpenSHMEM library's. Of the others nothing is known:
/// they may be the program's.
std::vector<std::string> unknown_variables(const char* const* environment);
/// The variable whose name is nearly this one, which may lack the beginning SHMEM_; "": none.
std::string nearest_variable(std::string_view name);

}  // namespace shmem
