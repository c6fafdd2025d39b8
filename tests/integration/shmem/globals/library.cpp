// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/shmem/globals/library.hpp"

std::uint64_t library_number = 41;

namespace {

std::uint64_t private_number = 42;

}  // namespace

std::uint64_t* library_private_number() {
  return &private_number;
}

std::uint64_t library_reads_number() {
  return library_number;
}
