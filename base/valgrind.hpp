// SPDX-License-Identifier: Apache-2.0
// valgrind's requests, if CMake has found its headers (Debian: valgrind); otherwise they do nothing. Outside valgrind a
// request is a few instructions. Not __has_include: ccache would then give the object of a tree without the headers.
#pragma once

#ifdef GBA_VALGRIND
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <valgrind/memcheck.h>
#pragma GCC diagnostic pop
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_MALLOCLIKE_BLOCK(address, bytes, red_zone, is_zero) static_cast<void>(address)
#define VALGRIND_FREELIKE_BLOCK(address, red_zone) static_cast<void>(address)
#define VALGRIND_MAKE_MEM_NOACCESS(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#define VALGRIND_MAKE_MEM_DEFINED(address, bytes) (static_cast<void>(address), static_cast<void>(bytes))
#endif
