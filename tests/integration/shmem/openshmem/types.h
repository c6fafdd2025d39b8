/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the type lists of shmem_types.h. Generic names are macros over those lists, and a macro is not expanded
 * inside itself, so calling generic names for each type needs another list. */
#ifndef OPENSHMEM_TYPES_H
#define OPENSHMEM_TYPES_H

#include <shmem.h>

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

#define TEST_AMO_BASIC_TYPES(X) \
  X(int, int)                   \
  X(long, long)                 \
  X(longlong, long long)        \
  X(uint, unsigned int)         \
  X(ulong, unsigned long)       \
  X(ulonglong, unsigned long long)

#define TEST_BITWISE_AMO_GENERIC_TYPES(X) \
  X(uint, unsigned int)                   \
  X(ulong, unsigned long)                 \
  X(ulonglong, unsigned long long)        \
  X(int, int)                             \
  X(long, long)                           \
  X(longlong, long long)

#endif
