// SPDX-License-Identifier: Apache-2.0
// A shared library of the program's own, with global variables.
#pragma once

#include <cstdint>

#define LIBRARY_API __attribute__((visibility("default")))

/// The program names it: the linker puts a copy into the program.
LIBRARY_API extern std::uint64_t library_number;
/// Stays in the library.
LIBRARY_API std::uint64_t* library_private_number();
/// library_number as the library's own code sees it.
LIBRARY_API std::uint64_t library_reads_number();
