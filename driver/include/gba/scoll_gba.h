/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that documents about a GBA component of Open MPI's SCOLL framework use (gba_send_arrival, GBA_CTRL_ENABLE,
 * ...), over gba.h, so that code made of their fragments compiles and works. It needs no header of Open MPI; the types
 * of the component itself are in openmpi/scoll. New programs use gba.h.
 *
 * A member:
 *
 *     gba_device_t device;
 *     gba_group_config_t config;
 *     gba_local_state_t state;
 *     gba_device_from(&device, opened);                                       (of gba_open)
 *     gba_member_from(&device, &handle, member, joined, &config, &state);     (of gba_group_join)
 *     ...
 *     gba_send_arrival(&device, config.group_id, config.local_member_id, ++sequence);
 *     while (!gba_poll_release(&state, sequence)) {
 *       ...
 *     }
 *
 * What differs from the documents, on purpose:
 *  - Registers are written by the library only: base_addr is NULL, and there is no register for arrivals in a group's
 *    block (they are stores to a page of their own: uapi rule 19).
 *  - Release addresses begin at offset 0x2000: at 0x0080, as there, those of 708 members would cover CONTROL.
 *  - A flag is not compared with >=: a removed device reads as all ones, and would release everybody. A sequence that
 *    has been released before is released.
 *  - Sequences of 32 bits may wrap around.
 *  - No message is sent: an arrival is one store. GBA_MSG_* are names only.
 *  - A barrier that cannot end makes a loop as above endless. gba_poll_release, which cannot return an error, then ends
 *    the process with a message; with state.errors_return set, it returns false and stores the negative errno in
 *    state.error, which the loop has to look at.
 *
 * Thread safety and lifetime: as the gba_device and gba_group, which the caller owns and which outlive these.
 */
#ifndef GBA_SCOLL_GBA_H
#define GBA_SCOLL_GBA_H

/* NOLINTBEGIN(modernize-use-nullptr): this is C. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gba.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As in uapi/gba_device.h and uapi/gba_regs.h, which may be included too. */
#define GBA_MAX_GROUPS 32u
#define GBA_MAX_MEMBERS 708u
#define GBA_STATUS_READY (UINT64_C(1) << 0)
#define GBA_STATUS_ACTIVE (UINT64_C(1) << 1)
#define GBA_STATUS_COMPLETE (UINT64_C(1) << 2)

/* Offsets in a group's block of registers: GBA_GROUP_* of uapi/gba_regs.h. */
#define GBA_REG_GROUP_ID 0x0000u
#define GBA_REG_MEMBER_COUNT 0x0004u
#define GBA_REG_ARRIVAL_COUNT 0x0008u
#define GBA_REG_MEMBER_MASK_BASE 0x0010u
#define GBA_REG_RELEASE_ADDR_BASE 0x2000u
#define GBA_REG_CONTROL 0x1000u
#define GBA_REG_STATUS 0x1008u
/* The offset of the block: GBA_GROUP_BASE there. */
#define GBA_GROUP_REG_BASE(group) (0x10000u + (uint64_t)(group)*0x4000u)

/* CONTROL: GBA_CONTROL_* there. */
#define GBA_CTRL_ENABLE (UINT64_C(1) << 0)
#define GBA_CTRL_RESET (UINT64_C(1) << 1)
#define GBA_CTRL_ARM (UINT64_C(1) << 2)

#define GBA_MSG_ARRIVE 0x01
#define GBA_MSG_RELEASE 0x02

#define GBA_NAMES_MOST_GROUPS 256 /* of any profile of the device */

/* An open device, with the memberships of this process. */
typedef struct gba_device_t {
  void* base_addr;                /* NULL */
  int device_fd;                  /* -1: the library's own */
  int num_groups;                 /* of the device */
  uint32_t group_allocation_mask; /* the first 32 groups in which this process is a member */
  gba_device* handle;
  struct {
    gba_group* group; /* NULL: not a member */
    uint32_t member;
    uint64_t sequence; /* of the last arrival */
  } members[GBA_NAMES_MOST_GROUPS];
} gba_device_t;

typedef struct gba_group_config_t {
  uint32_t group_id;
  uint32_t member_count;
  uint64_t member_mask[GBA_GROUP_MASK_WORDS];
  uint32_t local_member_id;
} gba_group_config_t;

typedef struct gba_local_state_t {
  volatile uint64_t* release_flag; /* NULL, as flag_memory: the library's own */
  uint64_t expected_sequence;      /* the latest one that was asked for */
  void* flag_memory;
  size_t flag_memory_size;
  gba_group* group;
  uint64_t released; /* the latest one that was released */
  int errors_return; /* set by the program: see above */
  int error;         /* 0, or the negative errno of a barrier that cannot end */
} gba_local_state_t;

/* The 64-bit number near `last` whose low half is that of `sequence`, if that has 32 bits; else `sequence`. */
static inline uint64_t gba_full_sequence(uint64_t last, uint64_t sequence) {
  if (sequence > UINT32_MAX) {
    return sequence;
  }
  return last + (uint64_t)(int64_t)(int32_t)((uint32_t)sequence - (uint32_t)last);
}

/* Errors: those of gba_device_get_info; nothing of a lost device is usable. */
static inline int gba_device_from(gba_device_t* out, gba_device* device) {
  gba_device_info info;
  int error;
  if (out == NULL) {
    return -EINVAL;
  }
  memset(out, 0, sizeof *out);
  out->device_fd = -1;
  error = gba_device_get_info(device, &info);
  if (error != 0) {
    return error;
  }
  out->num_groups = (int)info.groups;
  out->handle = device;
  return 0;
}

/* `joined` is this process's membership in the group of `handle`, as `member`. Errors: -EINVAL an argument is NULL, or
 * the handle is not of such a device. */
static inline int gba_member_from(gba_device_t* device, const gba_group_handle* handle, uint32_t member,
                                  gba_group* joined, gba_group_config_t* config, gba_local_state_t* state) {
  uint32_t i;
  if (device == NULL || handle == NULL || joined == NULL || config == NULL || state == NULL ||
      handle->group >= GBA_NAMES_MOST_GROUPS || handle->member_count > 64u * GBA_GROUP_MASK_WORDS) {
    return -EINVAL;
  }
  memset(config, 0, sizeof *config);
  memset(state, 0, sizeof *state);
  config->group_id = handle->group;
  config->member_count = handle->member_count;
  for (i = 0; i < handle->member_count; ++i) {
    config->member_mask[i / 64] |= UINT64_C(1) << (i % 64);
  }
  config->local_member_id = member;
  state->group = joined;
  state->expected_sequence = handle->sequence;
  state->released = handle->sequence;
  device->members[handle->group].group = joined;
  device->members[handle->group].member = member;
  device->members[handle->group].sequence = handle->sequence;
  if (handle->group < 32) {
    device->group_allocation_mask |= UINT32_C(1) << handle->group;
  }
  return 0;
}

/* gba_group_arrive. 0, or -EINVAL: this process is not that member of the group. */
static inline int gba_send_arrival(gba_device_t* device, uint32_t group_id, uint32_t member_id, uint64_t sequence) {
  if (device == NULL || group_id >= GBA_NAMES_MOST_GROUPS || device->members[group_id].group == NULL ||
      device->members[group_id].member != member_id) {
    return -EINVAL;
  }
  device->members[group_id].sequence = gba_full_sequence(device->members[group_id].sequence, sequence);
  gba_group_arrive(device->members[group_id].group, device->members[group_id].sequence);
  return 0;
}

/* gba_group_test: true once all members have arrived at `seq`. */
static inline bool gba_poll_release(gba_local_state_t* state, uint64_t seq) {
  const uint64_t sequence = gba_full_sequence(state->expected_sequence, seq);
  int error;
  if (sequence <= state->released) {
    return true;
  }
  state->expected_sequence = sequence;
  error = gba_group_test(state->group, sequence);
  if (error == 0) {
    state->released = sequence;
    return true;
  }
  if (error != -EAGAIN) {
    state->error = error;
    if (!state->errors_return) {
      fprintf(stderr, "gba_poll_release: barrier %llu cannot end: %s\n", (unsigned long long)sequence,
              gba_error_text());
      abort();
    }
  }
  return false;
}

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-nullptr) */
#endif
