/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that documents about a switch_barrier component of Open MPI's COLL framework use, over gba.h; conventions
 * and differences are those of scoll_gba.h. The device is one of the profile "switch": 256 groups of 128 members. The
 * component here is called gba (openmpi/coll) and serves both profiles.
 */
#ifndef GBA_COLL_SWITCH_BARRIER_H
#define GBA_COLL_SWITCH_BARRIER_H

#include "scoll_gba.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SWITCH_BARRIER_MAX_GROUPS 256u
#define SWITCH_BARRIER_MAX_MEMBERS 128u

/* Offsets in a group's block of registers: GBA_SWITCH_* of uapi/gba_switch_regs.h. */
#define SWITCH_BARRIER_REG_NETWORK_ADDR 0x0000u
#define SWITCH_BARRIER_REG_GROUP_ID 0x0008u
#define SWITCH_BARRIER_REG_MEMBER_MASK_LO 0x0010u
#define SWITCH_BARRIER_REG_MEMBER_MASK_HI 0x0018u
#define SWITCH_BARRIER_REG_MEMBER_COUNT 0x0020u
#define SWITCH_BARRIER_REG_CONTROL 0x0028u
#define SWITCH_BARRIER_REG_STATUS 0x0030u
#define SWITCH_BARRIER_REG_ARRIVED_MASK_LO 0x0038u
#define SWITCH_BARRIER_REG_ARRIVED_MASK_HI 0x0040u
#define SWITCH_BARRIER_REG_LOCAL_MEMBER_ID 0x0048u
#define SWITCH_BARRIER_REG_RELEASE_ADDR 0x0050u
#define SWITCH_BARRIER_REG_ARRIVAL_ADDR 0x0058u /* read only: where in BAR2 arrivals of the group are stored */

/* The offset of a group's register in BAR0. */
static inline uint64_t switch_barrier_calc_reg_addr(uint32_t group_id, uint32_t reg) {
  return 0x10000u + (uint64_t)group_id * 0x100u + reg;
}

/* What the documents fill in and never send; nothing here sends it. */
#define SWITCH_BARRIER_MSG_ARRIVE GBA_MSG_ARRIVE
#define SWITCH_BARRIER_MSG_RELEASE GBA_MSG_RELEASE
typedef struct switch_barrier_remote_store_msg_t {
  uint8_t msg_type; /* SWITCH_BARRIER_MSG_* */
  uint8_t reserved[3];
  uint32_t group_id;
  uint32_t member_id;
  uint32_t sequence;
  uint64_t timestamp;
  uint64_t target_addr;
  uint64_t store_value;
} switch_barrier_remote_store_msg_t;

/* Without a handle of a control plane and network addresses: members join by themselves, with the group's key. */
typedef gba_device_t switch_barrier_device_t;
typedef gba_group_config_t switch_barrier_group_config_t;
typedef gba_local_state_t switch_barrier_local_state_t;

static inline int switch_barrier_send_arrival(switch_barrier_device_t* device, uint32_t group_id, uint32_t member_id,
                                              uint64_t sequence) {
  return gba_send_arrival(device, group_id, member_id, sequence);
}
static inline bool switch_barrier_poll_release(switch_barrier_local_state_t* local_state, uint64_t sequence) {
  return gba_poll_release(local_state, sequence);
}

#ifdef __cplusplus
}
#endif

#endif
