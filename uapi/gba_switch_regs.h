/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BAR0 of the 256 x 128 ancestor of the Global Barrier Accelerator, found by GBA_PCI_DEVICE_ID_SWITCH. Device block,
 * commands, doorbells, flags and protocol are those of gba_regs.h and uapi/README.md; the group block differs. All of
 * its registers are 8 bytes, little-endian, aligned.
 */
#ifndef GBA_UAPI_SWITCH_REGS_H
#define GBA_UAPI_SWITCH_REGS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "uapi/gba_regs.h"

#define GBA_SWITCH_MAX_GROUPS 256u
#define GBA_SWITCH_MAX_MEMBERS 128u
#define GBA_SWITCH_MASK_WORDS 2u /* 64 members each: LO, HI */
#define GBA_SWITCH_MSIX_VECTORS (GBA_SWITCH_MAX_GROUPS + 1u)
#define GBA_SWITCH_MSIX_ERROR_VECTOR GBA_SWITCH_MAX_GROUPS

/* ---- Group block g, at GBA_SWITCH_GROUP_BASE(g); offsets within the block ---- */
#define GBA_SWITCH_GROUPS_OFFSET 0x10000u
#define GBA_SWITCH_GROUP_STRIDE 0x100u
#define GBA_SWITCH_GROUP_BASE(group) (GBA_SWITCH_GROUPS_OFFSET + (uint64_t)(group)*GBA_SWITCH_GROUP_STRIDE)

#define GBA_SWITCH_NETWORK_ADDR 0x0000u /* RW owner: the group's address on the fabric, which the device only keeps */
#define GBA_SWITCH_GROUP_ID 0x0008u     /* RO */
#define GBA_SWITCH_MEMBER_MASK 0x0010u  /* 8 x 2 RW owner: LO, HI */
#define GBA_SWITCH_MEMBER_COUNT 0x0020u /* RW owner, 1..128 */
#define GBA_SWITCH_CONTROL 0x0028u      /* RW owner; GBA_CONTROL_*, bit 3 is called INTERRUPT_EN there */
#define GBA_SWITCH_STATUS 0x0030u       /* RO; GBA_STATUS_* */
#define GBA_SWITCH_ARRIVED_MASK 0x0038u /* 8 x 2 RO: LO, HI */
#define GBA_SWITCH_LOCAL_MEMBER_ID 0x0048u /* RO, banked by port: which member this port is; GBA_SWITCH_NO_MEMBER */
#define GBA_SWITCH_RELEASE_ADDR 0x0050u    /* WO joined member, banked by port */
#define GBA_SWITCH_ARRIVAL_ADDR 0x0058u    /* RO: the offset of the group's doorbell slot in BAR2 */
#define GBA_SWITCH_SEQUENCE 0x0060u        /* RO; RW owner while ENABLE is 0 */
#define GBA_SWITCH_ERROR_CODE 0x0068u      /* RO */
#define GBA_SWITCH_TIMEOUT 0x0070u         /* RW owner, nanoseconds, 0 = never */
#define GBA_SWITCH_ROUND_AGE 0x0078u       /* RO, as GBA_GROUP_ROUND_AGE */
#define GBA_SWITCH_MEMBER_PORT 0x0080u     /* 8 x 16 RO: which port is which member, 8 bits each, lowest first */

#define GBA_SWITCH_NO_MEMBER UINT64_MAX
#define GBA_SWITCH_MEMBER_PORT_BITS 8u
#define GBA_SWITCH_MEMBER_PORT_NONE 0xffu
#define GBA_SWITCH_MEMBER_PORT_WORDS (GBA_SWITCH_MAX_MEMBERS * GBA_SWITCH_MEMBER_PORT_BITS / 64u)

struct gba_switch_group_block {
  uint64_t network_addr, group_id, member_mask[GBA_SWITCH_MASK_WORDS], member_count, control, status,
      arrived_mask[GBA_SWITCH_MASK_WORDS], local_member_id, release_addr, arrival_addr, sequence, error_code, timeout,
      round_age, member_port[GBA_SWITCH_MEMBER_PORT_WORDS];
};

#define GBA_SWITCH_ASSERT_AT(field, offset) \
  static_assert(offsetof(struct gba_switch_group_block, field) == (offset), #field " is where the map says")
GBA_SWITCH_ASSERT_AT(network_addr, GBA_SWITCH_NETWORK_ADDR);
GBA_SWITCH_ASSERT_AT(group_id, GBA_SWITCH_GROUP_ID);
GBA_SWITCH_ASSERT_AT(member_mask, GBA_SWITCH_MEMBER_MASK);
GBA_SWITCH_ASSERT_AT(member_count, GBA_SWITCH_MEMBER_COUNT);
GBA_SWITCH_ASSERT_AT(control, GBA_SWITCH_CONTROL);
GBA_SWITCH_ASSERT_AT(status, GBA_SWITCH_STATUS);
GBA_SWITCH_ASSERT_AT(arrived_mask, GBA_SWITCH_ARRIVED_MASK);
GBA_SWITCH_ASSERT_AT(local_member_id, GBA_SWITCH_LOCAL_MEMBER_ID);
GBA_SWITCH_ASSERT_AT(release_addr, GBA_SWITCH_RELEASE_ADDR);
GBA_SWITCH_ASSERT_AT(arrival_addr, GBA_SWITCH_ARRIVAL_ADDR);
GBA_SWITCH_ASSERT_AT(sequence, GBA_SWITCH_SEQUENCE);
GBA_SWITCH_ASSERT_AT(error_code, GBA_SWITCH_ERROR_CODE);
GBA_SWITCH_ASSERT_AT(timeout, GBA_SWITCH_TIMEOUT);
GBA_SWITCH_ASSERT_AT(round_age, GBA_SWITCH_ROUND_AGE);
GBA_SWITCH_ASSERT_AT(member_port, GBA_SWITCH_MEMBER_PORT);
#undef GBA_SWITCH_ASSERT_AT
static_assert(sizeof(struct gba_switch_group_block) <= GBA_SWITCH_GROUP_STRIDE, "a group block fits its stride");
static_assert(GBA_SWITCH_GROUP_BASE(GBA_SWITCH_MAX_GROUPS) <= GBA_MSIX_TABLE_OFFSET, "groups end before the table");
static_assert(GBA_MSIX_TABLE_OFFSET + GBA_SWITCH_MSIX_VECTORS * 16u <= GBA_MSIX_PBA_OFFSET, "it ends before the PBA");
static_assert(GBA_SWITCH_MAX_GROUPS - 1u <= GBA_CMD_GROUP_MASK, "a group fits its field");
static_assert(GBA_SWITCH_MASK_WORDS * 64u >= GBA_SWITCH_MAX_MEMBERS, "a mask has a bit for every member");
static_assert(GBA_DOORBELL_SLOT(GBA_SWITCH_MAX_GROUPS) <= GBA_DOORBELL_WAKEUP, "slots end below WAKEUP");
static_assert(GBA_SWITCH_MAX_GROUPS * GBA_FLAG_STRIDE <= GBA_BAR4_SIZE, "flags fit BAR4");

#endif
