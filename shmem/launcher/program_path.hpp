// SPDX-License-Identifier: Apache-2.0
// Which file a program's name means.
#pragma once

#include <string>

#include "shmem/result.hpp"

namespace shmem::launcher {

/// `name` itself if there is a slash in it, else the first executable of that name in the folders of `path` (as $PATH
/// lists them). Relative names are relative to `folder`, the current one if it is empty. The Error says what is wrong.
Result<std::string> find_program(const std::string& name, const std::string& path, const std::string& folder = "");

/// The folder that this program itself stands in; empty if that is not known.
std::string own_folder();

}  // namespace shmem::launcher
