/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgba: barriers in a switch, from user space.
 *
 * Conventions
 *  - Handles are opaque and owned by the caller: those of gba_open and gba_group_join are released by gba_close and
 *    gba_group_leave, nothing else.
 *  - A call returns 0 or a negative errno. gba_error_text() then describes, for the calling thread, what failed, on
 *    which device, with which result, and what to do. Besides the errnos listed, a call may return one of the operating
 *    system (-EMFILE, -ENOMEM). A NULL is -EINVAL unless it is documented as allowed.
 *  - No call hangs: a device that does not answer within 5 seconds is lost. One that is a process is lost after 0.4
 *    seconds if it does nothing meanwhile, because it is stopped, frozen or stuck and not just slow, and has up to a
 *    minute if it waits for a processor for most of the time; neither can be seen of one in another PID namespace.
 *    Memory stays mapped: no call crashes on a lost device, and it can be closed and reopened. If the kernel wants a
 *    device back, to unplug it or to take it from vfio-pci, the library leaves and frees its groups, which is an error
 *    release for the other members, and then releases the device: at once, or with GBA_STATUS=off, which leaves out the
 *    library's thread, in the next call that notices.
 *  - Times are nanoseconds of the monotonic clock; sequences are 64 bit and count from 1.
 *  - A device may be used by several threads at once. A group membership may be used by one thread at a time.
 *  - Rules cited as "uapi rule N" are in uapi/README.md.
 *
 * A barrier among n members: one member allocates and enables a group and sends its gba_group_handle, which is plain
 * data, to the others; every member joins as one of 0..n-1; then, for k = handle.sequence + 1,
 * + 2, ...:
 *
 *     gba_group_arrive(group, k);
 *     int error = gba_group_wait(group, k, timeout_ns);
 *
 * To a forked child its parent's devices are lost: it can neither arrive nor be released, does not keep their ports
 * when the parent ends, and may open them again, whatever other threads of the parent were doing. The library handles
 * SIGBUS in the memory of its devices while one is open, which shows that they were unplugged, and hands any other
 * SIGBUS, also one that a process sends, on to the handler that was installed before. The end of the last device puts
 * that back, unless another one was installed meanwhile, which should hand on, too. The kernel ends a process that
 * blocks SIGBUS in the thread in which an access raises it, so gba_open, gba_group_join, and the first call that a
 * thread makes on a device or a group unblock it in their thread. A thread that uses a device must not block it later.
 *
 * Each failure of a device has an errno. The device is *lost* to this process: every call on it fails with that errno
 * from then on, until it is closed and reopened. Waiting callers notice at once, except for -ENODEV:
 *
 *     -ENODEV        it reads all ones: pulled out, powered off, or its memory decoding is off
 *     -ENXIO         its memory answered with SIGBUS: unplugged, or its memory decoding is off
 *     -EREMOTEIO     a PCI error that cannot be corrected (VFIO's ERR)
 *     -ESHUTDOWN     the kernel wants it back, to unplug it or to give it to another driver (VFIO's REQ)
 *     -ECONNABORTED  the device is a process, which has ended or was killed
 *     -EHOSTDOWN     it does not answer
 *     -EBADMSG       its answers break the protocol
 *     -ECHILD        it belongs to the process that this one was forked from
 *
 * The device is present but does not work; its groups are in error afterwards:
 *
 *     -EIO           FATAL: it does not work until it is reset (gba_device_reset)
 *     -ENETDOWN      a link is down, this port's or another member's
 *
 * A barrier will not end for this member (returned by gba_group_test, sleep and wait only):
 *
 *     -ECONNRESET    the group or the whole device was reset
 *     -ENETRESET     another process reset this port (FLR), so it is not a member any more
 *     -EOWNERDEAD    the group was taken back: its owner freed it or has ended, or it was reclaimed
 *     -EPIPE         a member left, or its process ended
 *     -ECOMM         the release is lost, and arriving again for 5 seconds has not repaired that; a single loss is
 *                    repaired silently
 *     -ETIME         the round took longer than the group's TIMEOUT register allows
 *     -EFAULT        the device could not write a release flag
 *     -EPROTO        a member rang out of order
 *
 * No flag, event or connection shows -ENODEV, -EHOSTDOWN, -EIO, -ENETDOWN before the group was enabled, -ENETRESET and
 * -ECOMM. For the last two the device is asked when a barrier has taken a second, and every two seconds from then on;
 * for the others it is asked for one register every 250 ms, and 0.25 ms more for each member of the group.
 *
 * Not supported: a member waiting for an earlier sequence than its last arrival.
 */
#ifndef GBA_GBA_H
#define GBA_GBA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GBA_API __attribute__((visibility("default")))

#define GBA_GROUP_MASK_WORDS 12 /* 64 members each; member m is bit m % 64 of word m / 64 */
#define GBA_WAIT_FOREVER UINT64_MAX

typedef struct gba_device gba_device; /* an open function of a GBA: one switch port */
typedef struct gba_group gba_group;   /* this port's membership in one barrier group */

/* Where the device's releases land, which members poll. */
#define GBA_FLAGS_AUTO 0u /* in host memory, or in the device's if the host gives it no DMA */
#define GBA_FLAGS_DMA 1u  /* in host memory */
#define GBA_FLAGS_BAR 2u  /* in the device's memory, BAR4: every poll crosses the bus */

/* May be added: open the device even if it reports FATAL, so that it can be reset. */
#define GBA_OPEN_FATAL 0x100u

/* Which map the registers of an open device have. */
#define GBA_MAP_GBA 0u    /* uapi/gba_regs.h: up to 32 groups of up to 708 members */
#define GBA_MAP_SWITCH 1u /* uapi/gba_switch_regs.h: up to 256 groups of up to 128 members */

/* How to open a device. Zero everything, then set `size`. */
typedef struct gba_open_options {
  uint32_t size;  /* sizeof(gba_open_options) */
  uint32_t flags; /* GBA_FLAGS_*, and GBA_OPEN_FATAL */
} gba_open_options;

/* Facts about an open device. */
typedef struct gba_device_info {
  char backend[16];    /* how it was opened: "vfio-user", "vfio-group", "vfio-cdev" */
  char path[256];      /* what was opened */
  uint32_t version;    /* of the register map: major << 16 | minor */
  uint32_t port;       /* which port of the switch this is */
  uint32_t groups;     /* of the device */
  uint32_t members;    /* at most, per group */
  uint32_t is_process; /* 1: the device is a process and takes its turn on the processors (GBA_CAPS_WAKEUP) */
  uint32_t flags;      /* where releases land: GBA_FLAGS_DMA or GBA_FLAGS_BAR */
  uint32_t map;        /* of the registers: GBA_MAP_* */
  uint64_t features;   /* the CAPS register: GBA_CAPS_* of uapi/gba_regs.h */
} gba_device_info;

/* What the device has counted since it was powered on, for all ports together. */
typedef struct gba_device_counters {
  uint64_t arrivals, releases, stale, rejected, dma_faults, timeouts, resets, errors, interrupts, wakeups;
} gba_device_counters;

/* Names a group to other members, in this or another process or host. Plain data: copy it, send it. */
typedef struct gba_group_handle {
  uint32_t group;
  uint32_t key;          /* admits a member; 16 wrong keys lock a port out */
  uint32_t member_count; /* members are 0..member_count-1 */
  uint32_t reserved;     /* 0 */
  uint64_t sequence;     /* the group's first barrier is sequence + 1 */
} gba_group_handle;

/* A group of the device as every port sees it: owner, member or neither. */
typedef struct gba_group_status {
  uint32_t group;
  uint32_t member_count;                     /* 0: not configured, or not allocated */
  uint32_t arrival_count;                    /* in the open round */
  uint32_t status;                           /* GBA_STATUS_* of uapi/gba_regs.h: READY, ACTIVE, COMPLETE, ERROR */
  uint32_t error_code;                       /* why ERROR: GBA_ERROR_* of uapi/gba_device.h, else 0 */
  uint32_t error_member;                     /* GBA_NO_MEMBER if none is meant */
  uint32_t enabled;                          /* 1: arrivals are accepted */
  uint32_t reserved;                         /* 0 */
  uint64_t sequence;                         /* last released */
  uint64_t timeout_ns;                       /* 0: none */
  uint64_t round_age_ns;                     /* since the open round's first arrival; 0: none is open, or unknown */
  uint64_t members[GBA_GROUP_MASK_WORDS];    /* member m is bit m % 64 of word m / 64 */
  uint64_t arrived[GBA_GROUP_MASK_WORDS];    /* in the open round; in error, in the one that failed */
  uint16_t ports[GBA_GROUP_MASK_WORDS * 64]; /* of each member; GBA_NO_PORT: not joined, or unknown */
} gba_group_status;

#define GBA_NO_MEMBER 0xffffu
#define GBA_NO_PORT 0xffffu

/* "major.minor.patch" of the library. Never NULL; static. Thread-safe. */
GBA_API const char* gba_version(void);

/*
 * Text of the calling thread's last failed call, or "". -EAGAIN is no failure and changes nothing. Valid until the
 * thread's next call into the library.
 */
GBA_API const char* gba_error_text(void);

#define GBA_ADDRESS_SIZE 32 /* of a PCI address as text, "0000:3b:00.0", with its end */

/*
 * The GBAs of this machine that vfio-pci has, in the order of their PCI addresses, which gba_open takes: up to `room`
 * of them go to `addresses`, and *count is how many there are. Devices that another process has open are included.
 * `addresses` may be NULL if `room` is 0. Reads sysfs. Thread-safe. Errors: -EINVAL count is NULL, or addresses is, or
 * $GBA_PCI_ID is not a PCI id.
 */
GBA_API int gba_list(char (*addresses)[GBA_ADDRESS_SIZE], uint32_t room, uint32_t* count);

/*
 * Opens a GBA: `path`, or if that is NULL $GBA_DEVICE, or else /dev/gba0, or else the first GBA that sysfs shows. A
 * path is one of
 *  - a character device of VFIO (Linux 6.6 and later: a function's own; the node of an IOMMU group), or a link to one;
 *  - a PCI address, 0000:3b:00.0: either of the two, whichever the kernel has;
 *  - "vfio-user:PATH", or the path of a Unix socket (PATH beginning with @: an abstract one): a vfio-user server.
 * Opening the same device again in one process, by whatever name, gives the same device once more; each needs its
 * gba_close. Several functions of one IOMMU group can be open in one process, and in no other meanwhile.
 * Unless $GBA_STATUS is "off", a thread per device answers `gba groups` and `gba info` of the same user and of root.
 * Thread-safe. Errors: -ENODEV no such device, not a GBA, or not bound to vfio-pci; -EPROTO it speaks another version;
 * -EACCES no permission, or an SR-IOV function wants another VF token (docs/bring-up.md); -EBUSY it
 * has no free port or another process has it open; -EPERM another device in its IOMMU group keeps it from VFIO;
 * -EOPNOTSUPP no IOMMU is in front of it; -ENOMEM the limit of locked memory is too low for its flags; -EIO it reports
 * FATAL; -ECONNREFUSED no server has the socket; -ETIMEDOUT the server does not answer; -EINVAL out is NULL, the path
 * is invalid or means several devices, $GBA_PCI_ID is not a PCI id, or $GBA_VF_TOKEN no UUID.
 */
GBA_API int gba_open(const char* path, gba_device** out);

/*
 * gba_open with options. NULL options are the defaults, which $GBA_FLAGS (auto, dma, huge or bar; huge is dma with the
 * flags in a huge page if the system has a free one) may change; for a device that this process has already open the
 * options of the first opener hold. Thread-safe. Errors: those of gba_open; -EINVAL the options or $GBA_FLAGS are
 * invalid; -ENOTSUP flags in device memory are wanted and it has none.
 */
GBA_API int gba_open_with(const char* path, const gba_open_options* options, gba_device** out);

/*
 * Ends one gba_open. The last one closes the device once all its groups have been left; closing it frees the groups
 * that it owns. NULL is allowed. Thread-safe.
 */
GBA_API void gba_close(gba_device* device);

/* Errors: -EINVAL; those of a lost device (info is filled in nevertheless). */
GBA_API int gba_device_get_info(gba_device* device, gba_device_info* info);

/* Errors: -EINVAL; those of a lost device. */
GBA_API int gba_device_get_counters(gba_device* device, gba_device_counters* counters);

/*
 * Checks the device. 0: healthy. Errors: -EINVAL; those of a lost device; -EIO it reports FATAL; -ENETDOWN this port's
 * link is down.
 */
GBA_API int gba_device_check(gba_device* device);

/*
 * Reads the registers of a group, one after the other: while barriers go on they are not from one moment. Errors:
 * -EINVAL an argument is NULL, or the device has no such group; those of a lost device.
 */
GBA_API int gba_group_get_status(gba_device* device, uint32_t group, gba_group_status* status);

/*
 * Reads a register of `size` bytes, 4 or 8, at `offset` in BAR0: what `gba regs` shows. Reading has no side effects if
 * there is a register of that size, and is the fault BAD_ACCESS of this port otherwise. Errors: -EINVAL value is NULL,
 * the size is another one, or the place is unaligned or not below the MSI-X table; those of a lost device.
 */
GBA_API int gba_device_read_register(gba_device* device, uint64_t offset, uint32_t size, uint64_t* value);

/*
 * Writes a register, as gba_device_read_register reads one. For bringing up a device: the library does not know what
 * was written, so a value that takes groups, members or flags away can end every barrier of this port. The device
 * drops what it does not allow, and records that in FAULT. Errors: -EINVAL likewise, or the value needs more bytes;
 * those of a lost device.
 */
GBA_API int gba_device_write_register(gba_device* device, uint64_t offset, uint32_t size, uint64_t value);

/*
 * Resets the whole device, not this port alone: every group of every port gets an error release (-ECONNRESET) and is in
 * error until it is freed. It clears FATAL. Errors: -EINVAL; -EPERM this is not the privileged port; -EIO it still
 * reports FATAL; those of a lost device.
 */
GBA_API int gba_device_reset(gba_device* device);

/*
 * Allocates a group for members 0..member_count-1 whose first barrier is sequence + 1; this port owns it. It must be
 * enabled before any member arrives. Errors: -EINVAL member_count is 0 or more than the device's members, or
 * sequence is not below 2^54; -ENOSPC all groups are taken; -EDQUOT this port has as many groups as the device lets a
 * port have (`gba limit`); those of a lost device.
 */
GBA_API int gba_group_alloc(gba_device* device, uint32_t member_count, uint64_t sequence, gba_group_handle* handle);

/*
 * Owner: accepts arrivals. Errors: -EINVAL; -EPERM another port's group; -ESTALE the group is in error; those of a lost
 * device.
 */
GBA_API int gba_group_enable(gba_device* device, const gba_group_handle* handle);

/*
 * Owner: accepts no more arrivals. To end a group in good order: when all members have been released for the last time,
 * disable it, then all leave, then free it; no member gets an error release. Errors: -EINVAL; -EPERM; those of a lost
 * device.
 */
GBA_API int gba_group_disable(gba_device* device, const gba_group_handle* handle);

/*
 * Owner: frees the group; its remaining members get an error release and are unbound. Errors: -EINVAL; -EPERM;
 * -ENOENT it is already free; those of a lost device.
 */
GBA_API int gba_group_free(gba_device* device, const gba_group_handle* handle);

/*
 * Binds this port to `member` of the group and sets up its release flag. A port is at most one member of a group.
 * Members may join before or after the group is enabled. Errors: -EINVAL no such member; -EACCES wrong key, or this
 * port is locked out; -EADDRINUSE the member is taken; -EALREADY this port has already joined; -ENOENT no such group;
 * -ENOMEM; those of a lost device.
 */
GBA_API int gba_group_join(gba_device* device, const gba_group_handle* handle, uint32_t member, gba_group** out);

/*
 * Ends a membership; the other members of an enabled group get an error release (gba_group_disable). Frees `group`,
 * whatever it returns. NULL is allowed. Errors: those of a lost device.
 */
GBA_API int gba_group_leave(gba_group* group);

/*
 * Arrives at barrier `sequence`: one posted store. What the caller stored before is visible to the members that it
 * releases. Arriving again at the same sequence is harmless. Does not fail: a lost device is found by test and wait.
 * NULL does nothing.
 */
GBA_API void gba_group_arrive(gba_group* group, uint64_t sequence);

/*
 * Looks at the release flag once. 0: all have arrived at `sequence`, and what they stored before is visible.
 * -EAGAIN: not yet. Any other error ends the group for this member (none of the members will be released from
 * `sequence`, or this one cannot learn of it): all those of the list at the beginning. Success and -EAGAIN make no
 * system call, except for one check of the device in a thousand -EAGAINs; a failure asks the device for its details.
 */
GBA_API int gba_group_test(gba_group* group, uint64_t sequence);

/*
 * Sleeps until the release, an error, a signal, or at most `max_ns`, and never longer than 100 ms (1 ms if the device
 * cannot interrupt or the machine has no interrupt vector left; once as long as it takes to find a silent device).
 * Returns 0, -EAGAIN or an error like gba_group_test. It first repeats the arrival with a request for an interrupt,
 * which repairs a lost arrival or release. REQUIRES that this member has arrived at `sequence`. A caller with other
 * work calls this in a loop with a bounded time.
 */
GBA_API int gba_group_sleep(gba_group* group, uint64_t sequence, uint64_t max_ns);

/*
 * Waits: spins for a moment, then sleeps (gba_group_sleep). timeout_ns may be GBA_WAIT_FOREVER. Returns 0 or an error
 * like gba_group_test, or -ETIMEDOUT; gba_error_text then names the members that have not arrived, and the caller may
 * wait again.
 */
GBA_API int gba_group_wait(gba_group* group, uint64_t sequence, uint64_t timeout_ns);

/* The members that have not arrived in the open round, as a mask; asks the device. Errors: -EINVAL; those of a lost
 * device. */
GBA_API int gba_group_missing(gba_group* group, uint64_t mask[GBA_GROUP_MASK_WORDS]);

#ifdef __cplusplus
}
#endif

#endif
