/* SPDX-License-Identifier: Apache-2.0 */
/* The types of OpenSHMEM 1.6, tables 3 to 10, once more: so that a type which the library's own lists lack is missed,
 * and because a macro's list cannot be expanded inside itself. */
#ifndef OPENSHMEM_TYPES_H
#define OPENSHMEM_TYPES_H

#include <shmem.h>

/* Remote memory access: 14, with their aliases 24. */
#define TEST_RMA_BASIC_TYPES(X) \
  X(float, float)               \
  X(double, double)             \
  X(longdouble, long double)    \
  X(char, char)                 \
  X(schar, signed char)         \
  X(short, short)               \
  X(int, int)                   \
  X(long, long)                 \
  X(longlong, long long)        \
  X(uchar, unsigned char)       \
  X(ushort, unsigned short)     \
  X(uint, unsigned int)         \
  X(ulong, unsigned long)       \
  X(ulonglong, unsigned long long)
#define TEST_RMA_TYPES(X) \
  TEST_RMA_BASIC_TYPES(X) \
  X(int8, int8_t)         \
  X(int16, int16_t)       \
  X(int32, int32_t)       \
  X(int64, int64_t)       \
  X(uint8, uint8_t)       \
  X(uint16, uint16_t)     \
  X(uint32, uint32_t)     \
  X(uint64, uint64_t)     \
  X(size, size_t)         \
  X(ptrdiff, ptrdiff_t)

/* Atomics that add, and waiting: 6, with their aliases 12. */
#define TEST_AMO_BASIC_TYPES(X) \
  X(int, int)                   \
  X(long, long)                 \
  X(longlong, long long)        \
  X(uint, unsigned int)         \
  X(ulong, unsigned long)       \
  X(ulonglong, unsigned long long)
#define TEST_AMO_TYPES(X) \
  TEST_AMO_BASIC_TYPES(X) \
  X(int32, int32_t)       \
  X(int64, int64_t)       \
  X(uint32, uint32_t)     \
  X(uint64, uint64_t)     \
  X(size, size_t)         \
  X(ptrdiff, ptrdiff_t)

/* Atomics that fetch, set and swap: those and two more. */
#define TEST_EXTENDED_AMO_BASIC_TYPES(X) \
  X(float, float)                        \
  X(double, double)                      \
  TEST_AMO_BASIC_TYPES(X)
#define TEST_EXTENDED_AMO_TYPES(X) \
  X(float, float)                  \
  X(double, double)                \
  TEST_AMO_TYPES(X)

/* Atomics on bits: 3, with their aliases 7. */
#define TEST_BITWISE_AMO_BASIC_TYPES(X) \
  X(uint, unsigned int)                 \
  X(ulong, unsigned long)               \
  X(ulonglong, unsigned long long)
#define TEST_BITWISE_AMO_TYPES(X) \
  TEST_BITWISE_AMO_BASIC_TYPES(X) \
  X(int32, int32_t)               \
  X(int64, int64_t)               \
  X(uint32, uint32_t)             \
  X(uint64, uint64_t)

/* Waiting and testing, deprecated since 1.5. */
#define TEST_OLD_WAIT_TYPES(X) \
  X(short, short)              \
  X(ushort, unsigned short)

/* Reductions: and, or, xor; max, min; sum, prod and the scans. */
#define TEST_BITWISE_REDUCE_BASIC_TYPES(X) \
  X(uchar, unsigned char)                  \
  X(ushort, unsigned short)                \
  X(uint, unsigned int)                    \
  X(ulong, unsigned long)                  \
  X(ulonglong, unsigned long long)
#define TEST_BITWISE_REDUCE_TYPES(X) \
  TEST_BITWISE_REDUCE_BASIC_TYPES(X) \
  X(int8, int8_t)                    \
  X(int16, int16_t)                  \
  X(int32, int32_t)                  \
  X(int64, int64_t)                  \
  X(uint8, uint8_t)                  \
  X(uint16, uint16_t)                \
  X(uint32, uint32_t)                \
  X(uint64, uint64_t)                \
  X(size, size_t)
#define TEST_ORDERED_REDUCE_TYPES(X) TEST_RMA_TYPES(X)
#define TEST_COMPLEX_TYPES(X)        \
  X(complexd, SHMEM_COMPLEX(double)) \
  X(complexf, SHMEM_COMPLEX(float))
#define TEST_ARITHMETIC_REDUCE_TYPES(X) \
  TEST_RMA_TYPES(X)                     \
  TEST_COMPLEX_TYPES(X)

/* The same on active sets, deprecated since 1.5. */
#define TEST_OLD_BITWISE_REDUCE_TYPES(X) \
  X(short, short)                        \
  X(int, int)                            \
  X(long, long)                          \
  X(longlong, long long)
#define TEST_OLD_ORDERED_REDUCE_TYPES(X) \
  TEST_OLD_BITWISE_REDUCE_TYPES(X)       \
  X(float, float)                        \
  X(double, double)                      \
  X(longdouble, long double)
#define TEST_OLD_ARITHMETIC_REDUCE_TYPES(X) \
  TEST_OLD_ORDERED_REDUCE_TYPES(X)          \
  TEST_COMPLEX_TYPES(X)

/* For generic names: those that have a routine, once each. The signed ones are int32 and int64, whichever type that
 * is, and the other of long and long long has none. */
#define TEST_BITWISE_AMO_GENERIC_TYPES(X) \
  TEST_BITWISE_AMO_BASIC_TYPES(X)         \
  X(int32, int32_t)                       \
  X(int64, int64_t)
#define TEST_BITWISE_REDUCE_GENERIC_TYPES(X) \
  TEST_BITWISE_REDUCE_BASIC_TYPES(X)         \
  X(int8, int8_t)                            \
  X(int16, int16_t)                          \
  X(int32, int32_t)                          \
  X(int64, int64_t)
#define TEST_WAIT_GENERIC_TYPES(X) \
  TEST_AMO_BASIC_TYPES(X)          \
  TEST_OLD_WAIT_TYPES(X)
#define TEST_OLD_WAIT_GENERIC_TYPES(X) \
  X(short, short)                      \
  X(int, int)                          \
  X(long, long)                        \
  X(longlong, long long)
#define TEST_ARITHMETIC_REDUCE_BASIC_TYPES(X) \
  TEST_RMA_BASIC_TYPES(X)                     \
  TEST_COMPLEX_TYPES(X)

/* Sizes of elements in routines that go by bits: X(bits, bytes). */
#define TEST_SIZES(X) \
  X(8, 1)             \
  X(16, 2)            \
  X(32, 4)            \
  X(64, 8)            \
  X(128, 16)

#endif
