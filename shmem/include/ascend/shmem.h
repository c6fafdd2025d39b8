/* SPDX-License-Identifier: Apache-2.0 */
/* For programs written for Ascend SHMEM, whose header has this name: put this folder before the others. */
#include "../aclshmem.h" /* IWYU pragma: export */
