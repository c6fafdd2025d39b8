// SPDX-License-Identifier: Apache-2.0
// The functions and source lines of calls, by addr2line.
#pragma once

#include <string>
#include <string_view>

namespace shmem::launcher {

/// "exchange (heat.c:31), main (heat.c:57)" for EndReport::frames, with a hint if no line is known. "" for no calls.
std::string source_lines(std::string_view frames);

}  // namespace shmem::launcher
