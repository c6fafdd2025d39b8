/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Global Barrier Accelerator looks like from outside: PCI ids, regions, interrupts, the doorbell page and the
 * release flag. Registers are in gba_regs.h, the protocol in uapi/README.md. C11 and C++; no code.
 */
#ifndef GBA_UAPI_DEVICE_H
#define GBA_UAPI_DEVICE_H

#include <assert.h>
#include <stdint.h>

/*
 * Every field of a word has one name: NAME_SHIFT and NAME_MASK (unshifted). Take it apart and put it together with
 * these two only.
 */
#define GBA_FIELD_GET(name, word) (((uint64_t)(word) >> name##_SHIFT) & name##_MASK)
#define GBA_FIELD_PUT(name, value) (((uint64_t)(value)&name##_MASK) << name##_SHIFT)

/* ---- PCI identity: placeholders until the vendor assigns real ones; GBA_PCI_ID=vvvv:dddd overrides them at run time.
 * ---- */
#define GBA_PCI_VENDOR_ID 0x1eafu
#define GBA_PCI_DEVICE_ID 0x0b01u        /* 32 groups x 708 members */
#define GBA_PCI_DEVICE_ID_VF 0x0b02u     /* an SR-IOV virtual function of it: a port like any other, not privileged */
#define GBA_PCI_DEVICE_ID_SWITCH 0x0b00u /* the 256 x 128 ancestor */
#define GBA_PCI_CLASS 0x120000u          /* processing accelerator */

/* ---- VFIO region and interrupt indices ---- */
enum {
  GBA_REGION_CONTROL = 0,   /* BAR0 */
  GBA_REGION_DOORBELLS = 2, /* BAR2 */
  GBA_REGION_FLAGS = 4,     /* BAR4 */
  GBA_REGION_CONFIG = 7,    /* PCI config space */
  GBA_NUM_REGIONS = 9
};
enum {
  GBA_IRQ_INTX = 0,
  GBA_IRQ_MSI = 1,
  GBA_IRQ_MSIX = 2, /* vector g: release of group g; last vector: error */
  GBA_IRQ_ERR = 3,
  GBA_IRQ_REQ = 4,
  GBA_NUM_IRQS = 5
};

#define GBA_BAR0_SIZE 0x100000u
#define GBA_BAR2_SIZE 0x10000u
#define GBA_BAR4_SIZE 0x10000u
#define GBA_CONFIG_SIZE 0x1000u

/* A device drives this many address bits at least: memory for release flags lies below 2^40. */
#define GBA_DMA_ADDRESS_BITS 40

/* ---- Dimensions of the GBA profile ---- */
#define GBA_MAX_GROUPS 32u
#define GBA_MAX_MEMBERS 708u
#define GBA_MASK_WORDS 12u /* 64 members each */
#define GBA_MSIX_VECTORS (GBA_MAX_GROUPS + 1u)
#define GBA_MSIX_ERROR_VECTOR GBA_MAX_GROUPS

/* ---- BAR2: this port's doorbell page ---- */
#define GBA_DOORBELL_STRIDE 64u
#define GBA_DOORBELL_SLOT(group) ((uint64_t)(group)*GBA_DOORBELL_STRIDE)
#define GBA_DOORBELL_WAKEUP 0xffc0u /* 4-byte word, only with GBA_CAPS_WAKEUP */
#define GBA_WAKEUP_SLEEPING 0x1u    /* the device sleeps: kick it */

/* The 8-byte ARRIVAL word. VALID is always 1, so a word is never 0; bits 48-61 are zero. */
#define GBA_ARRIVAL_SEQUENCE_SHIFT 0
#define GBA_ARRIVAL_SEQUENCE_MASK UINT64_C(0xffffffff)
#define GBA_ARRIVAL_MEMBER_SHIFT 32
#define GBA_ARRIVAL_MEMBER_MASK UINT64_C(0xffff)
#define GBA_ARRIVAL_RESERVED_SHIFT 48
#define GBA_ARRIVAL_RESERVED_MASK UINT64_C(0x3fff)
#define GBA_ARRIVAL_VALID_SHIFT 62
#define GBA_ARRIVAL_VALID_MASK UINT64_C(1)
#define GBA_ARRIVAL_NOTIFY_SHIFT 63
#define GBA_ARRIVAL_NOTIFY_MASK UINT64_C(1)

/* ---- The release flag: one 8-byte word on a cache line of its own, in the member's memory or in BAR4 ---- */
#define GBA_FLAG_STRIDE 64u
#define GBA_FLAG_SEQUENCE_SHIFT 0
#define GBA_FLAG_SEQUENCE_MASK UINT64_C(0x00ffffffffffffff)
/* The largest that SEQUENCE may be set to: from there 2^55 barriers are left before flags repeat (rule 6). */
#define GBA_SEQUENCE_MAX UINT64_C(0x007fffffffffffff)
#define GBA_FLAG_CODE_SHIFT 56
#define GBA_FLAG_CODE_MASK UINT64_C(0x7f)
#define GBA_FLAG_ERROR_SHIFT 63
#define GBA_FLAG_ERROR_MASK UINT64_C(1)

/* What a read returns once the device is gone. Never a sequence that anybody waits for. */
#define GBA_ALL_ONES UINT64_MAX

/* Why a group is in ERROR: the code of ERROR_CODE and of the flag word. */
enum {
  GBA_ERROR_NONE = 0,
  GBA_ERROR_LINK_DOWN = 1,
  GBA_ERROR_TIMEOUT = 2,
  GBA_ERROR_DMA_FAULT = 3,
  GBA_ERROR_RESET = 4,
  GBA_ERROR_PROTOCOL = 5,
  GBA_ERROR_LEAVE = 6
};

static_assert(GBA_MASK_WORDS * 64u >= GBA_MAX_MEMBERS, "a mask has a bit for every member");
static_assert(GBA_DOORBELL_SLOT(GBA_MAX_GROUPS) <= GBA_DOORBELL_WAKEUP, "slots end below WAKEUP");
static_assert(GBA_DOORBELL_WAKEUP + 4u <= GBA_BAR2_SIZE, "WAKEUP is in BAR2");
static_assert(GBA_MAX_GROUPS * GBA_FLAG_STRIDE <= GBA_BAR4_SIZE, "flags fit BAR4");
static_assert(GBA_MAX_MEMBERS - 1u <= GBA_ARRIVAL_MEMBER_MASK, "a member fits its field");
static_assert((GBA_FLAG_SEQUENCE_MASK >> 55) == 1u && GBA_FLAG_CODE_SHIFT == 56, "sequence and code are adjacent");

#endif
