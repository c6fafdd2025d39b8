// SPDX-License-Identifier: Apache-2.0
// What a routine does, by its name, and which of its arguments say how much.
#pragma once

#include <cstddef>
#include <string_view>

#include "shmem/profile/table.hpp"

namespace shmem::profile {

/// Arguments are numbered without a context in front.
struct Shape {
  Kind kind = Kind::kOther;
  bool moves = false;       // the call moves elements
  bool has_pe = false;      // the last argument is the PE
  int pointer = 0;          // the argument that points to elements
  int count = -1;           // the argument with their number; -1: one element
  int blocks = -1;          // one by which that is multiplied; -1: none
  std::size_t element = 0;  // bytes of one; 0: as the type of the pointer says
};

/// `name`: with what all routines have in front. `has_ctx`, `has_team`: what the first argument is.
Shape shape_of(std::string_view name, bool has_ctx, bool has_team);

}  // namespace shmem::profile
