// SPDX-License-Identifier: Apache-2.0
// A shared library of the test program, with global variables.
#pragma once

#include <cstdint>

#define LIBRARY_API __attribute__((visibility("default")))

/// The program refers to it, so the linker puts a copy into the program.
LIBRARY_API extern std::uint64_t library_number;
/// The program does not refer to it, so it stays in the library.
LIBRARY_API std::uint64_t* library_private_number();
/// library_number as the library's own code sees it.
LIBRARY_API std::uint64_t library_reads_number();
