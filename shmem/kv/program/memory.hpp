// SPDX-License-Identifier: Apache-2.0
// Whether the caches fit into the symmetric heap.
#pragma once

#include <string>

#include "shmem/kv/program/layout.hpp"

namespace kv_program {

/// What is wrong, with the numbers to change, or "". The same on all PEs.
std::string too_large(const Shape& shape);

}  // namespace kv_program
