/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types that OpenSHMEM's routines come in (OpenSHMEM 1.6, tables 3 to 10), as lists: LIST(X) is X(NAME, type) for
 * each, where NAME is what stands in the routine's name. The first of each pair of lists has a type once only, which
 * is what generic selection needs; the fixed-width types are among those already.
 */
#ifndef SHMEM_SHMEM_TYPES_H
#define SHMEM_SHMEM_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Complex numbers are C's in C and C++'s in C++: the same two numbers in memory. In C the keyword needs no header; the
 * names that complex.h defines (I, complex) stay the program's. */
#ifdef __cplusplus
#include <complex>
#define SHMEM_COMPLEX(type) std::complex<type>
#else
#define SHMEM_COMPLEX(type) type _Complex
#endif

/* Remote memory access: 14, with their aliases 24. */
#define SHMEM_RMA_BASIC_TYPES(X) \
  X(float, float)                \
  X(double, double)              \
  X(longdouble, long double)     \
  X(char, char)                  \
  X(schar, signed char)          \
  X(short, short)                \
  X(int, int)                    \
  X(long, long)                  \
  X(longlong, long long)         \
  X(uchar, unsigned char)        \
  X(ushort, unsigned short)      \
  X(uint, unsigned int)          \
  X(ulong, unsigned long)        \
  X(ulonglong, unsigned long long)
#define SHMEM_RMA_TYPES(X) \
  SHMEM_RMA_BASIC_TYPES(X) \
  X(int8, int8_t)          \
  X(int16, int16_t)        \
  X(int32, int32_t)        \
  X(int64, int64_t)        \
  X(uint8, uint8_t)        \
  X(uint16, uint16_t)      \
  X(uint32, uint32_t)      \
  X(uint64, uint64_t)      \
  X(size, size_t)          \
  X(ptrdiff, ptrdiff_t)

/* Atomics that add, and waiting: 6, with their aliases 12. */
#define SHMEM_AMO_BASIC_TYPES(X) \
  X(int, int)                    \
  X(long, long)                  \
  X(longlong, long long)         \
  X(uint, unsigned int)          \
  X(ulong, unsigned long)        \
  X(ulonglong, unsigned long long)
#define SHMEM_AMO_TYPES(X) \
  SHMEM_AMO_BASIC_TYPES(X) \
  X(int32, int32_t)        \
  X(int64, int64_t)        \
  X(uint32, uint32_t)      \
  X(uint64, uint64_t)      \
  X(size, size_t)          \
  X(ptrdiff, ptrdiff_t)

/* Atomics that fetch, set and swap: those and two more. */
#define SHMEM_EXTENDED_AMO_BASIC_TYPES(X) \
  X(float, float)                         \
  X(double, double)                       \
  SHMEM_AMO_BASIC_TYPES(X)
#define SHMEM_EXTENDED_AMO_TYPES(X) \
  X(float, float)                   \
  X(double, double)                 \
  SHMEM_AMO_TYPES(X)

/* Atomics on bits: 3, with their aliases 7. */
#define SHMEM_BITWISE_AMO_BASIC_TYPES(X) \
  X(uint, unsigned int)                  \
  X(ulong, unsigned long)                \
  X(ulonglong, unsigned long long)
#define SHMEM_BITWISE_AMO_TYPES(X) \
  SHMEM_BITWISE_AMO_BASIC_TYPES(X) \
  X(int32, int32_t)                \
  X(int64, int64_t)                \
  X(uint32, uint32_t)              \
  X(uint64, uint64_t)

/* The same for types that only shmem_compat.h has routines for. */
#define SHMEM_SIGNED_BITWISE_AMO_TYPES(X) \
  X(int, int)                             \
  X(long, long)                           \
  X(longlong, long long)

/* Waiting and testing, deprecated since 1.5. */
#define SHMEM_OLD_WAIT_TYPES(X) \
  X(short, short)               \
  X(ushort, unsigned short)

/* Reductions: and, or, xor; max, min; sum, prod and the scans. */
#define SHMEM_BITWISE_REDUCE_BASIC_TYPES(X) \
  X(uchar, unsigned char)                   \
  X(ushort, unsigned short)                 \
  X(uint, unsigned int)                     \
  X(ulong, unsigned long)                   \
  X(ulonglong, unsigned long long)
#define SHMEM_BITWISE_REDUCE_TYPES(X) \
  SHMEM_BITWISE_REDUCE_BASIC_TYPES(X) \
  X(int8, int8_t)                     \
  X(int16, int16_t)                   \
  X(int32, int32_t)                   \
  X(int64, int64_t)                   \
  X(uint8, uint8_t)                   \
  X(uint16, uint16_t)                 \
  X(uint32, uint32_t)                 \
  X(uint64, uint64_t)                 \
  X(size, size_t)
#define SHMEM_ORDERED_REDUCE_TYPES(X) SHMEM_RMA_TYPES(X)
#define SHMEM_COMPLEX_TYPES(X)       \
  X(complexd, SHMEM_COMPLEX(double)) \
  X(complexf, SHMEM_COMPLEX(float))
#define SHMEM_ARITHMETIC_REDUCE_TYPES(X) \
  SHMEM_RMA_TYPES(X)                     \
  SHMEM_COMPLEX_TYPES(X)

/* The same on active sets, deprecated since 1.5. */
#define SHMEM_OLD_BITWISE_REDUCE_TYPES(X) \
  X(short, short)                         \
  X(int, int)                             \
  X(long, long)                           \
  X(longlong, long long)
#define SHMEM_OLD_ORDERED_REDUCE_TYPES(X) \
  SHMEM_OLD_BITWISE_REDUCE_TYPES(X)       \
  X(float, float)                         \
  X(double, double)                       \
  X(longdouble, long double)
#define SHMEM_OLD_ARITHMETIC_REDUCE_TYPES(X) \
  SHMEM_OLD_ORDERED_REDUCE_TYPES(X)          \
  SHMEM_COMPLEX_TYPES(X)

/* For generic names: those that have a routine, once each. The signed ones of reductions are int32 and int64, whichever
 * type that is, and the other of long and long long has none. */
#define SHMEM_BITWISE_AMO_GENERIC_TYPES(X) \
  SHMEM_BITWISE_AMO_BASIC_TYPES(X)         \
  SHMEM_SIGNED_BITWISE_AMO_TYPES(X)
#define SHMEM_BITWISE_REDUCE_GENERIC_TYPES(X) \
  SHMEM_BITWISE_REDUCE_BASIC_TYPES(X)         \
  X(int8, int8_t)                             \
  X(int16, int16_t)                           \
  X(int32, int32_t)                           \
  X(int64, int64_t)
#define SHMEM_WAIT_GENERIC_TYPES(X) \
  SHMEM_AMO_BASIC_TYPES(X)          \
  SHMEM_OLD_WAIT_TYPES(X)
#define SHMEM_OLD_WAIT_GENERIC_TYPES(X) \
  X(short, short)                       \
  X(int, int)                           \
  X(long, long)                         \
  X(longlong, long long)
#define SHMEM_ARITHMETIC_REDUCE_BASIC_TYPES(X) \
  SHMEM_RMA_BASIC_TYPES(X)                     \
  SHMEM_COMPLEX_TYPES(X)

/* Sizes of elements in routines that go by bits: X(bits, bytes). */
#define SHMEM_SIZES(X) \
  X(8, 1)              \
  X(16, 2)             \
  X(32, 4)             \
  X(64, 8)             \
  X(128, 16)

#endif
