// SPDX-License-Identifier: Apache-2.0
// shmem_device.h compiles alone in C++20, as the first header, with the overloads or without (SHMEM_NO_OVERLOADS).
#include <shmem_device.h>

#include <type_traits>

// Each type has a number. char has that of signed or unsigned char.
static_assert(shmemi_type_of<float>() == SHMEMX_FLOAT && shmemi_type_of<int8_t>() == SHMEMX_INT8);
static_assert(shmemi_type_of<int16_t>() == SHMEMX_INT16 && shmemi_type_of<int32_t>() == SHMEMX_INT32);
static_assert(shmemi_type_of<int64_t>() == SHMEMX_INT64 && shmemi_type_of<long long>() == SHMEMX_INT64);
static_assert(shmemi_type_of<uint8_t>() == SHMEMX_UINT8 && shmemi_type_of<uint16_t>() == SHMEMX_UINT16);
static_assert(shmemi_type_of<uint32_t>() == SHMEMX_UINT32 && shmemi_type_of<uint64_t>() == SHMEMX_UINT64);
static_assert(shmemi_type_of<char>() == (std::is_signed_v<char> ? SHMEMX_INT8 : SHMEMX_UINT8));

int main() {
  return shmemx_current_core() == nullptr ? 0 : 1;
}
