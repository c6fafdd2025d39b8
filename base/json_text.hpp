// SPDX-License-Identifier: Apache-2.0
// Texts in JSON, for programs and libraries that write only a few lines of it.
#pragma once

#include <string>
#include <string_view>

namespace base {

/// `text` in quotes, with all that JSON does not allow in a string escaped. Bytes that are not UTF-8, as a file's name
/// may have, become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace base
