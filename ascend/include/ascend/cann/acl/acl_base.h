/* SPDX-License-Identifier: Apache-2.0 */
/* CANN's other name for parts of acl.h: see there. */
#include "acl.h" /* IWYU pragma: export */
