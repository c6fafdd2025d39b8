// SPDX-License-Identifier: Apache-2.0
// Files that a user names, by an option or a variable: a name may as well be that of a folder, a FIFO or a huge file.
#pragma once

#include <cstddef>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace base {

// The text of an error is the reason alone ("it is a folder"); the caller adds the name and what names it.

/// Opens a regular file for reading. Does not wait, as it would for the writer of a FIFO.
Result<UniqueFd> open_regular_file(const std::string& path);

/// The contents from where `fd` is, up to `most` bytes, none of which is 0.
Result<std::string> read_text(const UniqueFd& fd, std::size_t most);

/// The contents of a regular file of up to `most` bytes, none of which is 0.
Result<std::string> read_text_file(const std::string& path, std::size_t most);

}  // namespace base
