/* SPDX-License-Identifier: Apache-2.0 */
/* Where shmem.h was found before OpenSHMEM 1.1; deprecated since. */
#include "../shmem.h"
