/* SPDX-License-Identifier: Apache-2.0 */
/* Where shmemx.h was found before OpenSHMEM 1.1; deprecated since. */
#include "../shmemx.h"
