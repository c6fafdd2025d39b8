// SPDX-License-Identifier: Apache-2.0
// Variables as text for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "shmem/config/options.hpp"

namespace shmem_info {

/// The columns of the terminal on standard output. 0 if it is no terminal: lines then have any length.
std::size_t terminal_width();

/// `text` with ends of lines at spaces, so that a line has up to `width` columns of which the first `indent` are free
/// from the second line on. `first`: columns that the first line has already. `width` 0: as it is.
std::string wrapped(std::string_view text, std::size_t first, std::size_t indent, std::size_t width);

/// A line or paragraph for each variable.
std::string table_text(const std::vector<shmem::Setting>& settings, std::size_t width);
/// All about one variable.
std::string variable_text(const shmem::Setting& setting, std::size_t width);

}  // namespace shmem_info
