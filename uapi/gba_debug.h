/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug region: faults on request. A device has it only if CAPS.DEBUG says so, at region index GBA_REGION_DEBUG,
 * with a VFIO type capability of GBA_DEBUG_REGION_TYPE and GBA_DEBUG_REGION_SUBTYPE. Its registers are 8 bytes,
 * aligned, and every port has its own; what they start strikes the whole device. Write the arguments, then INJECT, then
 * read RESULT. An argument keeps its value; GBA_DEBUG_ANY is "not given".
 */
#ifndef GBA_UAPI_DEBUG_H
#define GBA_UAPI_DEBUG_H

#include <stdint.h>

#include "uapi/gba_device.h"

#define GBA_REGION_DEBUG GBA_NUM_REGIONS /* the first past those of PCI */
#define GBA_DEBUG_REGION_SIZE 0x1000u
#define GBA_DEBUG_REGION_TYPE (0x80000000u | GBA_PCI_VENDOR_ID) /* VFIO_REGION_TYPE_PCI_VENDOR_TYPE */
#define GBA_DEBUG_REGION_SUBTYPE 1u

#define GBA_DEBUG_MAGIC 0x00u  /* RO */
#define GBA_DEBUG_INJECT 0x08u /* WO: one of GBA_INJECT_* */
#define GBA_DEBUG_RESULT 0x10u /* RO: of this port's last INJECT; 0, or GBA_DEBUG_REFUSED */
#define GBA_DEBUG_GROUP 0x18u  /* RW, from here to VALUE */
#define GBA_DEBUG_MEMBER 0x20u
#define GBA_DEBUG_PORT 0x28u
#define GBA_DEBUG_COUNT 0x30u  /* how often it strikes; GBA_DEBUG_ANY: always. 1 to begin with */
#define GBA_DEBUG_AFTER 0x38u  /* occasions that it lets pass first. 0 to begin with */
#define GBA_DEBUG_TIME 0x40u   /* nanoseconds. 0 to begin with */
#define GBA_DEBUG_SPREAD 0x48u /* nanoseconds, standard deviation. 0 to begin with */
#define GBA_DEBUG_VALUE 0x50u  /* 0 to begin with */
#define GBA_DEBUG_CLEAR 0x58u  /* WO: forgets all faults that wait for an occasion, stalls and latency */
#define GBA_DEBUG_ARMED 0x60u  /* RO: faults that wait for an occasion */
#define GBA_DEBUG_STRUCK 0x68u /* RO: how often one has struck */

#define GBA_DEBUG_MAGIC_VALUE UINT64_C(0x4742444142414731)
#define GBA_DEBUG_ANY UINT64_MAX
#define GBA_DEBUG_REFUSED 1u /* no such fault, or an argument that it needs is missing or out of range */

enum {
  /* These wait for an occasion: a flag store (an error release too), an interrupt or an arrival of any, or of GROUP,
   * MEMBER and PORT where they are given; they let AFTER of them pass and strike COUNT of them. */
  GBA_INJECT_DROP_RELEASE = 1,      /* the store is lost */
  GBA_INJECT_DELAY_RELEASE = 2,     /* it comes TIME later, and what follows to that port after it */
  GBA_INJECT_DUPLICATE_RELEASE = 3, /* it is done twice */
  GBA_INJECT_DROP_INTERRUPT = 4,    /* GROUP: the vector */
  GBA_INJECT_DROP_ARRIVAL = 5,
  GBA_INJECT_DMA_FAULT = 6, /* the store fails: uapi rule 21 */
  /* These happen at once. */
  GBA_INJECT_STALL_GROUP = 7,    /* no arrival at GROUP is looked at for TIME; 0: until CLEAR */
  GBA_INJECT_FORGE_ARRIVAL = 8,  /* as if MEMBER of GROUP rang SEQUENCE + VALUE, VALUE being signed */
  GBA_INJECT_START_SEQUENCE = 9, /* SEQUENCE of groups is VALUE when they are allocated */
  GBA_INJECT_LATENCY = 10,       /* every store comes TIME later, normally distributed with SPREAD */
  GBA_INJECT_LINK_DOWN = 11,     /* of PORT: uapi rule 34 */
  GBA_INJECT_LINK_UP = 12,       /* of PORT */
  GBA_INJECT_RESET_GROUP = 13,   /* GROUP: uapi rule 23 */
  GBA_INJECT_RESET_DEVICE = 14,  /* uapi rule 23 */
  GBA_INJECT_FATAL = 15,         /* uapi rule 35 */
  GBA_INJECT_REMOVE = 16,        /* PORT, or all that are connected: uapi rule 36 */
  GBA_INJECT_STORM = 17,         /* reserved: refused */
  /* This one waits for a command of any port, or of PORT. */
  GBA_INJECT_SLOW_COMMAND = 18, /* it takes TIME, and CMD_STATUS shows BUSY meanwhile: uapi rule 4 */
  GBA_INJECT_END
};

#endif
