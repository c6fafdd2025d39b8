// SPDX-License-Identifier: Apache-2.0
// What programs take of the machine's memory.
#pragma once

#include <string>

namespace bench {

/// In kB.
struct MemoryUse {
  long processes = 0;
  double pss = 0;          // private memory, and a fair part of what is shared
  double page_tables = 0;  // of the processes
};

/// All running programs of this name (at most 15 characters), together.
MemoryUse memory_use_of(const std::string& program);

/// What the kernel says that programs could still get, in kB.
double available_memory();

}  // namespace bench
