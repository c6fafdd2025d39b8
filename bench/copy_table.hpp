// SPDX-License-Identifier: Apache-2.0
// How much the time of a copy within a process depends on the addresses.
#pragma once

namespace bench {

/// Prints the best and the worst time of gets, of puts and of memcpy, for sizes from 64 bytes to 16 MiB.
void print_copy_table();

}  // namespace bench
