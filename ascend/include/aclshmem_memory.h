/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: memory and teams. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_MEMORY_H
#define SHMEM_ACLSHMEM_MEMORY_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include "aclshmem_types.h"

/* ---- Memory ----
 *
 * NULL before aclshmemx_init_attr. Collective calls, here and of teams, begin after the work of the stream NULL; work
 * of other streams that synchronises the same PEs must be complete before. */

ACLSHMEM_INLINE void* aclshmem_malloc(size_t size) SHMEM_NOEXCEPT {
  return aclshmemi_ready() ? shmem_malloc(size) : NULL;
}
ACLSHMEM_INLINE void* aclshmem_calloc(size_t count, size_t size) SHMEM_NOEXCEPT {
  return aclshmemi_ready() ? shmem_calloc(count, size) : NULL;
}
ACLSHMEM_INLINE void* aclshmem_align(size_t alignment, size_t size) SHMEM_NOEXCEPT {
  return aclshmemi_ready() ? shmem_align(alignment, size) : NULL;
}
ACLSHMEM_INLINE void aclshmem_free(void* ptr) SHMEM_NOEXCEPT {
  if (aclshmemi_ready()) {
    shmem_free(ptr);
  }
}
ACLSHMEM_INLINE int aclshmemi_is_mem_type(aclshmem_mem_type_t type) SHMEM_NOEXCEPT {
  return type == HOST_SIDE || type == DEVICE_SIDE;
}
/* As the calls above: host side and device side are one heap. NULL for any other type. */
ACLSHMEM_INLINE void* aclshmemx_malloc(size_t size,
                                       aclshmem_mem_type_t type ACLSHMEM_DEFAULT_VALUE(DEVICE_SIDE)) SHMEM_NOEXCEPT {
  return aclshmemi_is_mem_type(type) ? aclshmem_malloc(size) : NULL;
}
ACLSHMEM_INLINE void* aclshmemx_calloc(size_t count, size_t size,
                                       aclshmem_mem_type_t type ACLSHMEM_DEFAULT_VALUE(DEVICE_SIDE)) SHMEM_NOEXCEPT {
  return aclshmemi_is_mem_type(type) ? aclshmem_calloc(count, size) : NULL;
}
ACLSHMEM_INLINE void* aclshmemx_align(size_t alignment, size_t size,
                                      aclshmem_mem_type_t type ACLSHMEM_DEFAULT_VALUE(DEVICE_SIDE)) SHMEM_NOEXCEPT {
  return aclshmemi_is_mem_type(type) ? aclshmem_align(alignment, size) : NULL;
}
ACLSHMEM_INLINE void aclshmemx_free(void* ptr,
                                    aclshmem_mem_type_t type ACLSHMEM_DEFAULT_VALUE(DEVICE_SIDE)) SHMEM_NOEXCEPT {
  if (aclshmemi_is_mem_type(type)) {
    aclshmem_free(ptr);
  }
}
/* The beginning of this PE's heap. */
ACLSHMEM_INLINE void* aclshmemx_get_heap_base(aclshmem_mem_type_t type ACLSHMEM_DEFAULT_VALUE(DEVICE_SIDE))
    SHMEM_NOEXCEPT {
  return aclshmemi_running() && aclshmemi_is_mem_type(type) ? shmemx_heap_base() : NULL;
}
ACLSHMEM_INLINE void* aclshmem_ptr(void* ptr, int pe) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_ptr(ptr, pe) : NULL;
}

/* ---- Teams ---- */

ACLSHMEM_INLINE int aclshmem_my_pe(void) SHMEM_NOEXCEPT {
  return shmem_my_pe();
}
ACLSHMEM_INLINE int aclshmem_n_pes(void) SHMEM_NOEXCEPT {
  return shmem_n_pes();
}
ACLSHMEM_INLINE int aclshmem_team_my_pe(aclshmem_team_t team) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_team_my_pe(shmemx_team_by_number(team)) : -1;
}
ACLSHMEM_INLINE int aclshmem_team_n_pes(aclshmem_team_t team) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_team_n_pes(shmemx_team_by_number(team)) : -1;
}
ACLSHMEM_INLINE void aclshmemi_give_team(aclshmem_team_t* team, shmem_team_t made) SHMEM_NOEXCEPT {
  if (team != NULL) {
    *team = shmemx_team_number(made);
  }
}
/* A PE that is not in the new team gets ACLSHMEM_TEAM_INVALID and success. */
ACLSHMEM_INLINE int aclshmem_team_split_strided(aclshmem_team_t parent_team, int pe_start, int pe_stride, int pe_size,
                                                aclshmem_team_t* new_team) SHMEM_NOEXCEPT {
  if (!aclshmemi_ready()) {
    return ACLSHMEM_NOT_INITED;
  }
  shmem_team_t made = SHMEM_TEAM_INVALID;
  const int error = shmemx_team_split_strided(shmemx_team_by_number(parent_team), pe_start, pe_stride, pe_size,
                                              new_team != NULL ? &made : NULL);
  aclshmemi_give_team(new_team, made);
  return aclshmemi_code(error);
}
ACLSHMEM_INLINE int aclshmem_team_split_2d(aclshmem_team_t parent_team, int x_range, aclshmem_team_t* x_team,
                                           aclshmem_team_t* y_team) SHMEM_NOEXCEPT {
  if (!aclshmemi_ready()) {
    return ACLSHMEM_NOT_INITED;
  }
  shmem_team_t made[2] = {SHMEM_TEAM_INVALID, SHMEM_TEAM_INVALID};
  const int error = shmemx_team_split_2d(shmemx_team_by_number(parent_team), x_range, x_team != NULL ? &made[0] : NULL,
                                         y_team != NULL ? &made[1] : NULL);
  aclshmemi_give_team(x_team, made[0]);
  aclshmemi_give_team(y_team, made[1]);
  return aclshmemi_code(error);
}
ACLSHMEM_INLINE int aclshmem_team_translate_pe(aclshmem_team_t src_team, int src_pe,
                                               aclshmem_team_t dest_team) SHMEM_NOEXCEPT {
  return aclshmemi_running()
             ? shmem_team_translate_pe(shmemx_team_by_number(src_team), src_pe, shmemx_team_by_number(dest_team))
             : -1;
}
ACLSHMEM_INLINE void aclshmem_team_destroy(aclshmem_team_t team) SHMEM_NOEXCEPT {
  if (aclshmemi_ready()) {
    shmem_team_destroy(shmemx_team_by_number(team));
  }
}
ACLSHMEM_INLINE int aclshmem_team_get_config(aclshmem_team_t team, aclshmem_team_config_t* config) SHMEM_NOEXCEPT {
  shmem_team_config_t ours = {0};
  if (!aclshmemi_running()) {
    return ACLSHMEM_NOT_INITED;
  }
  if (config == NULL) {
    return ACLSHMEM_INVALID_PARAM;
  }
  const int error = shmemx_team_get_config(shmemx_team_by_number(team), &ours);
  if (error != 0) {
    return aclshmemi_code(error);
  }
  memset(config, 0, sizeof *config);
  config->version = 1;
  config->num_contexts = ours.num_contexts;
  return ACLSHMEM_SUCCESS;
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
