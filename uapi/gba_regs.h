/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BAR0 of the Global Barrier Accelerator (the 32 x 708 profile). Registers are accessed in their natural size only (4
 * or 8 bytes, aligned), little-endian. RO, RW, WO, W1C as noted; "owner" is the port that allocated the group.
 *
 * The structs give the layout a second time, so that the compiler finds an overlap or a gap; code uses the offsets.
 */
#ifndef GBA_UAPI_REGS_H
#define GBA_UAPI_REGS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "uapi/gba_device.h"

/* ---- Device block, at 0 ---- */
#define GBA_REG_MAGIC 0x000u       /* 4 RO */
#define GBA_REG_VERSION 0x004u     /* 4 RO */
#define GBA_REG_CAPS 0x008u        /* 8 RO */
#define GBA_REG_DEV_CONTROL 0x010u /* 8 RW, privileged port */
#define GBA_REG_DEV_STATUS 0x018u  /* 8 RO */
#define GBA_REG_PORT_ID 0x020u     /* 4 RO, of this function */
#define GBA_REG_CMD 0x028u         /* 8 WO */
#define GBA_REG_CMD_STATUS 0x030u  /* 8 RO, of this port's last command */
#define GBA_REG_CMD_RESULT 0x038u  /* 8 RO, of this port's last command */
#define GBA_REG_FAULT 0x040u       /* 8 R/W1C, this port's faults; GBA_FAULT_* bits */
#define GBA_REG_FAULT_INFO 0x048u  /* 8 RO, of the first fault since FAULT was clear */
#define GBA_REG_FAULT_ADDR 0x050u  /* 8 RO, likewise */
#define GBA_REG_KICK 0x058u        /* 8 WO, wakes a sleeping device */
#define GBA_REG_GROUP_LIMIT 0x060u /* 8 RW, privileged port: how many groups an ordinary port may have */
#define GBA_REG_GROUPS_HELD 0x068u /* 8 RO: how many groups count for this port */

/* Counters: 8 bytes, RO, of the whole device since it was powered on. */
#define GBA_REG_COUNTER_ARRIVALS 0x080u   /* accepted, stale ones included */
#define GBA_REG_COUNTER_RELEASES 0x088u   /* rounds released */
#define GBA_REG_COUNTER_STALE 0x090u      /* arrivals answered with an earlier release */
#define GBA_REG_COUNTER_REJECTED 0x098u   /* arrivals refused */
#define GBA_REG_COUNTER_DMA_FAULTS 0x0a0u /* flag stores that failed */
#define GBA_REG_COUNTER_TIMEOUTS 0x0a8u   /* rounds that ran into TIMEOUT */
#define GBA_REG_COUNTER_RESETS 0x0b0u     /* group and device resets */
#define GBA_REG_COUNTER_ERRORS 0x0b8u     /* groups that entered ERROR, for any reason */
#define GBA_REG_COUNTER_INTERRUPTS 0x0c0u /* MSI-X vectors raised */
#define GBA_REG_COUNTER_WAKEUPS 0x0c8u    /* times the device slept and was woken */
#define GBA_REG_COUNTERS_END 0x0d0u

#define GBA_MAGIC_VALUE 0x31414247u /* "GBA1" */
#define GBA_VERSION_MAJOR 1u
#define GBA_VERSION_MINOR 2u /* 1: ROUND_AGE and MEMBER_PORT; 2: GROUP_LIMIT and GROUPS_HELD */

#define GBA_VERSION_MINOR_FIELD_SHIFT 0
#define GBA_VERSION_MINOR_FIELD_MASK UINT64_C(0xffff)
#define GBA_VERSION_MAJOR_FIELD_SHIFT 16
#define GBA_VERSION_MAJOR_FIELD_MASK UINT64_C(0xffff)

#define GBA_CAPS_GROUPS_SHIFT 0
#define GBA_CAPS_GROUPS_MASK UINT64_C(0xffff)
#define GBA_CAPS_MEMBERS_SHIFT 16
#define GBA_CAPS_MEMBERS_MASK UINT64_C(0xffff)
#define GBA_CAPS_BAR_FLAGS (UINT64_C(1) << 32)   /* BAR4 flags may be used */
#define GBA_CAPS_WAKEUP (UINT64_C(1) << 33)      /* the device is a process and may sleep: uapi rule 14 */
#define GBA_CAPS_NOTIFY (UINT64_C(1) << 34)      /* arrivals may ask for an interrupt */
#define GBA_CAPS_LINK_EVENTS (UINT64_C(1) << 35) /* link changes raise the error vector */
#define GBA_CAPS_DEBUG (UINT64_C(1) << 36)       /* a fault-injection region exists */
#define GBA_CAPS_GROUP_LIMIT (UINT64_C(1) << 37) /* a port may have GROUP_LIMIT groups: uapi rule 37 */

#define GBA_DEV_CONTROL_RESET (UINT64_C(1) << 0)

#define GBA_DEV_STATUS_READY (UINT64_C(1) << 0)
#define GBA_DEV_STATUS_LINK_UP (UINT64_C(1) << 1)
#define GBA_DEV_STATUS_FATAL (UINT64_C(1) << 2)

/* ---- CMD: opcode, group, member, key ---- */
#define GBA_CMD_OPCODE_SHIFT 0
#define GBA_CMD_OPCODE_MASK UINT64_C(0xff)
#define GBA_CMD_GROUP_SHIFT 8
#define GBA_CMD_GROUP_MASK UINT64_C(0xff)
#define GBA_CMD_MEMBER_SHIFT 16
#define GBA_CMD_MEMBER_MASK UINT64_C(0xffff)
#define GBA_CMD_KEY_SHIFT 32
#define GBA_CMD_KEY_MASK UINT64_C(0xffffffff)

enum {
  GBA_CMD_ALLOC = 1,  /* a free group and a random key; the caller's port owns it */
  GBA_CMD_FREE = 2,   /* owner: unbind all members, give the group back */
  GBA_CMD_JOIN = 3,   /* bind the caller's port to a member; key needed */
  GBA_CMD_LEAVE = 4,  /* unbind the caller's port */
  GBA_CMD_RECLAIM = 5 /* privileged port: free a group whose owner is gone */
};

/* While BUSY, the command runs and all else of CMD_STATUS and CMD_RESULT reads 0: uapi rule 4. */
#define GBA_CMD_STATUS_BUSY_SHIFT 0
#define GBA_CMD_STATUS_BUSY_MASK UINT64_C(1)
#define GBA_CMD_STATUS_ERROR_SHIFT 8
#define GBA_CMD_STATUS_ERROR_MASK UINT64_C(0xff)

/* CMD_STATUS error codes */
enum {
  GBA_CMD_OK = 0,
  GBA_CMD_ERROR_OPCODE = 1,          /* no such command */
  GBA_CMD_ERROR_NO_FREE_GROUP = 2,   /* ALLOC: all groups are taken */
  GBA_CMD_ERROR_GROUP = 3,           /* group out of range or not allocated */
  GBA_CMD_ERROR_MEMBER = 4,          /* member out of range, or not in MEMBER_MASK */
  GBA_CMD_ERROR_MEMBER_TAKEN = 5,    /* JOIN: another port is that member */
  GBA_CMD_ERROR_ALREADY_JOINED = 6,  /* JOIN: this port is a member already */
  GBA_CMD_ERROR_KEY = 7,             /* JOIN: wrong key */
  GBA_CMD_ERROR_LOCKED_OUT = 8,      /* JOIN: too many wrong keys from this port */
  GBA_CMD_ERROR_NOT_OWNER = 9,       /* FREE by another port */
  GBA_CMD_ERROR_NOT_JOINED = 10,     /* LEAVE by a port that is no member */
  GBA_CMD_ERROR_NOT_PRIVILEGED = 11, /* RECLAIM by an ordinary port, or of a group whose owner lives */
  GBA_CMD_ERROR_GROUP_LIMIT = 12     /* ALLOC: the port has as many groups as GROUP_LIMIT lets it (rule 37) */
};
#define GBA_MAX_WRONG_KEYS 16u

/* CMD_RESULT of ALLOC */
#define GBA_CMD_RESULT_GROUP_SHIFT 0
#define GBA_CMD_RESULT_GROUP_MASK UINT64_C(0xff)
#define GBA_CMD_RESULT_KEY_SHIFT 32
#define GBA_CMD_RESULT_KEY_MASK UINT64_C(0xffffffff)

/* ---- FAULT: one bit per kind. FAULT_INFO: kind, group, member, low 32 bits of the sequence or of the value. ---- */
enum {
  GBA_FAULT_NOT_JOINED = 0,    /* an arrival of a port that is not that member */
  GBA_FAULT_NOT_ENABLED = 1,   /* an arrival at a group that is not enabled */
  GBA_FAULT_BAD_ARRIVAL = 2,   /* reserved bits set, VALID clear, slot outside the groups */
  GBA_FAULT_PROTOCOL = 3,      /* an arrival more than one round ahead */
  GBA_FAULT_DMA = 4,           /* a flag store failed; FAULT_ADDR is the IOVA */
  GBA_FAULT_BAD_ACCESS = 5,    /* a register access of wrong size, alignment or offset; FAULT_ADDR is the offset */
  GBA_FAULT_BAD_CONFIG = 6,    /* a register was given a value that it cannot hold */
  GBA_FAULT_NOT_PERMITTED = 7, /* a write to a register of another port's group, a privileged one, or CMD while BUSY */
  GBA_FAULT_KEY = 8,           /* a wrong join key */
  GBA_FAULT_TIMEOUT = 9,       /* a round ran into TIMEOUT */
  GBA_NUM_FAULTS = 10
};
#define GBA_FAULT_BIT(kind) (UINT64_C(1) << (kind))

#define GBA_FAULT_INFO_KIND_SHIFT 0
#define GBA_FAULT_INFO_KIND_MASK UINT64_C(0xff)
#define GBA_FAULT_INFO_GROUP_SHIFT 8
#define GBA_FAULT_INFO_GROUP_MASK UINT64_C(0xff)
#define GBA_FAULT_INFO_MEMBER_SHIFT 16
#define GBA_FAULT_INFO_MEMBER_MASK UINT64_C(0xffff)
#define GBA_FAULT_INFO_VALUE_SHIFT 32
#define GBA_FAULT_INFO_VALUE_MASK UINT64_C(0xffffffff)

/* ---- Group block g, at GBA_GROUP_BASE(g); offsets within the block ---- */
#define GBA_GROUPS_OFFSET 0x10000u
#define GBA_GROUP_STRIDE 0x4000u
#define GBA_GROUP_BASE(group) (GBA_GROUPS_OFFSET + (uint64_t)(group)*GBA_GROUP_STRIDE)

#define GBA_GROUP_ID 0x0000u            /* 4 RO */
#define GBA_GROUP_MEMBER_COUNT 0x0004u  /* 4 RW owner, 1..708 */
#define GBA_GROUP_ARRIVAL_COUNT 0x0008u /* 4 RO, in the open round */
#define GBA_GROUP_MEMBER_MASK 0x0010u   /* 8 x 12 RW owner */
#define GBA_GROUP_ARRIVED_MASK 0x0080u  /* 8 x 12 RO */
#define GBA_GROUP_CONTROL 0x1000u       /* 8 RW owner */
#define GBA_GROUP_STATUS 0x1008u        /* 8 RO */
#define GBA_GROUP_SEQUENCE 0x1010u      /* 8 RO; RW owner while ENABLE is 0 */
#define GBA_GROUP_ERROR_CODE 0x1018u    /* 8 RO */
#define GBA_GROUP_TIMEOUT 0x1020u       /* 8 RW owner, nanoseconds, 0 = never */
#define GBA_GROUP_ROUND_AGE 0x1028u     /* 8 RO, nanoseconds since the open round's first arrival; 0: none is open */
#define GBA_GROUP_RELEASE_ADDR 0x2000u  /* 8 x 708 WO joined member */
#define GBA_GROUP_MEMBER_PORT 0x3800u   /* 8 x 177 RO: which port is which member, 16 bits each, lowest first */

#define GBA_MEMBER_PORT_BITS 16u
#define GBA_MEMBER_PORT_NONE 0xffffu
#define GBA_MEMBER_PORT_WORDS (GBA_MAX_MEMBERS * GBA_MEMBER_PORT_BITS / 64u)

#define GBA_CONTROL_ENABLE (UINT64_C(1) << 0)
#define GBA_CONTROL_RESET (UINT64_C(1) << 1)
#define GBA_CONTROL_ARM (UINT64_C(1) << 2)
#define GBA_CONTROL_IRQ_EN (UINT64_C(1) << 3)

#define GBA_STATUS_READY (UINT64_C(1) << 0)
#define GBA_STATUS_ACTIVE (UINT64_C(1) << 1)
#define GBA_STATUS_COMPLETE (UINT64_C(1) << 2)
#define GBA_STATUS_ERROR (UINT64_C(1) << 3)

#define GBA_ERROR_CODE_CODE_SHIFT 0
#define GBA_ERROR_CODE_CODE_MASK UINT64_C(0xffff)
#define GBA_ERROR_CODE_MEMBER_SHIFT 16
#define GBA_ERROR_CODE_MEMBER_MASK UINT64_C(0xffff)

/* RELEASE_ADDR value that means "my BAR4 slot" */
#define GBA_RELEASE_ADDR_BAR_FLAGS UINT64_MAX

/* ---- MSI-X ---- */
#define GBA_MSIX_TABLE_OFFSET 0xf0000u
#define GBA_MSIX_PBA_OFFSET 0xf8000u

struct gba_device_block {
  uint32_t magic, version;
  uint64_t caps, dev_control, dev_status;
  uint32_t port_id, reserved_24;
  uint64_t cmd, cmd_status, cmd_result, fault, fault_info, fault_addr, kick, group_limit, groups_held;
  uint64_t reserved_70[2];
  uint64_t counters[10];
};

struct gba_group_block {
  uint32_t group_id, member_count, arrival_count, reserved_0c;
  uint64_t member_mask[GBA_MASK_WORDS];
  uint64_t reserved_70[2];
  uint64_t arrived_mask[GBA_MASK_WORDS];
  uint64_t reserved_e0[484];
  uint64_t control, status, sequence, error_code, timeout, round_age;
  uint64_t reserved_1030[506];
  uint64_t release_addr[GBA_MAX_MEMBERS];
  uint64_t reserved_3620[60];
  uint64_t member_port[GBA_MEMBER_PORT_WORDS];
};

#define GBA_ASSERT_AT(type, field, offset) \
  static_assert(offsetof(struct type, field) == (offset), #type "." #field " is where the map says")
GBA_ASSERT_AT(gba_device_block, magic, GBA_REG_MAGIC);
GBA_ASSERT_AT(gba_device_block, version, GBA_REG_VERSION);
GBA_ASSERT_AT(gba_device_block, caps, GBA_REG_CAPS);
GBA_ASSERT_AT(gba_device_block, dev_control, GBA_REG_DEV_CONTROL);
GBA_ASSERT_AT(gba_device_block, dev_status, GBA_REG_DEV_STATUS);
GBA_ASSERT_AT(gba_device_block, port_id, GBA_REG_PORT_ID);
GBA_ASSERT_AT(gba_device_block, cmd, GBA_REG_CMD);
GBA_ASSERT_AT(gba_device_block, cmd_status, GBA_REG_CMD_STATUS);
GBA_ASSERT_AT(gba_device_block, cmd_result, GBA_REG_CMD_RESULT);
GBA_ASSERT_AT(gba_device_block, fault, GBA_REG_FAULT);
GBA_ASSERT_AT(gba_device_block, fault_info, GBA_REG_FAULT_INFO);
GBA_ASSERT_AT(gba_device_block, fault_addr, GBA_REG_FAULT_ADDR);
GBA_ASSERT_AT(gba_device_block, kick, GBA_REG_KICK);
GBA_ASSERT_AT(gba_device_block, group_limit, GBA_REG_GROUP_LIMIT);
GBA_ASSERT_AT(gba_device_block, groups_held, GBA_REG_GROUPS_HELD);
GBA_ASSERT_AT(gba_device_block, counters, GBA_REG_COUNTER_ARRIVALS);
static_assert(sizeof(struct gba_device_block) == GBA_REG_COUNTERS_END, "counters end where the map says");
static_assert(GBA_REG_COUNTERS_END <= GBA_GROUPS_OFFSET, "the device block ends before the groups");

GBA_ASSERT_AT(gba_group_block, group_id, GBA_GROUP_ID);
GBA_ASSERT_AT(gba_group_block, member_count, GBA_GROUP_MEMBER_COUNT);
GBA_ASSERT_AT(gba_group_block, arrival_count, GBA_GROUP_ARRIVAL_COUNT);
GBA_ASSERT_AT(gba_group_block, member_mask, GBA_GROUP_MEMBER_MASK);
GBA_ASSERT_AT(gba_group_block, arrived_mask, GBA_GROUP_ARRIVED_MASK);
GBA_ASSERT_AT(gba_group_block, control, GBA_GROUP_CONTROL);
GBA_ASSERT_AT(gba_group_block, status, GBA_GROUP_STATUS);
GBA_ASSERT_AT(gba_group_block, sequence, GBA_GROUP_SEQUENCE);
GBA_ASSERT_AT(gba_group_block, error_code, GBA_GROUP_ERROR_CODE);
GBA_ASSERT_AT(gba_group_block, timeout, GBA_GROUP_TIMEOUT);
GBA_ASSERT_AT(gba_group_block, round_age, GBA_GROUP_ROUND_AGE);
GBA_ASSERT_AT(gba_group_block, release_addr, GBA_GROUP_RELEASE_ADDR);
GBA_ASSERT_AT(gba_group_block, member_port, GBA_GROUP_MEMBER_PORT);
static_assert(GBA_MAX_MEMBERS * GBA_MEMBER_PORT_BITS % 64u == 0, "no word is half used");
static_assert(sizeof(struct gba_group_block) <= GBA_GROUP_STRIDE, "a group block fits its stride");
static_assert(GBA_GROUP_BASE(GBA_MAX_GROUPS) <= GBA_MSIX_TABLE_OFFSET, "the groups end before the MSI-X table");
static_assert(GBA_MSIX_TABLE_OFFSET + GBA_MSIX_VECTORS * 16u <= GBA_MSIX_PBA_OFFSET, "the table ends before the PBA");
static_assert(GBA_MSIX_PBA_OFFSET + 8u <= GBA_BAR0_SIZE, "the PBA is in BAR0");
#undef GBA_ASSERT_AT

#endif
