/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges: processes that start and end independently pull blocks (of a KV cache, for instance) from each other by
 * key. There is no launcher and no collective call, and shmem_init is not needed. All members of an exchange are
 * processes of one user on one node, and of other nodes if they call shmemx_exchange_connect. Link with -lkvexchange,
 * which needs no libshmem, or with -lshmem.
 *
 * A member registers memory, fills blocks of it and publishes them: each gets an entry in the member's directory, which
 * the others map and read without the member's help. A reader finds the entry of a key and pulls the block: it copies
 * the bytes itself, then checks that the entry has not changed meanwhile. So a pull returns the bytes that were
 * published under the key, or an error, never other bytes. A lease keeps the owner from changing a block that is read.
 *
 * No call ends the process: each returns 0 or a number, or a negative errno that shmemx_error_text (shmemx.h) explains.
 * Unless a call says otherwise, any thread may make it at any time between open and close. In a process that was forked
 * from the one that made a handle, each call with that handle fails with -EPERM at once.
 */
#ifndef SHMEM_SHMEMX_EXCHANGE_H
#define SHMEM_SHMEMX_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SHMEMX_EXCHANGE_MOST_MEMBERS = 64, SHMEMX_EXCHANGE_MOST_KEY_BYTES = 128, SHMEMX_EXCHANGE_MOST_NAME_BYTES = 48 };
/* Members on other nodes that a member is connected with. */
enum { SHMEMX_EXCHANGE_MOST_REMOTE_MEMBERS = 256 };

/* ---- Members ---- */

typedef struct shmemx_exchange_t shmemx_exchange_t;

/* 0 means the default everywhere. */
typedef struct shmemx_exchange_options_t {
  uint32_t blocks;    /* the most that this member publishes at a time, up to 2^24; 65536 */
  uint32_t leases;    /* quota: the blocks of this member that each reader may keep leased, up to 4096; 64 */
  uint32_t lease_ms;  /* the longest lease of blocks of this member, up to 60000; 1000 */
  uint32_t transfers; /* quota: pulls of this member that wait or run in the background, up to 4096; 64. As many more
                         with blocks of other nodes */
  uint32_t join_ms;   /* how long open waits for members that do not answer, up to 60000; 1000 */
  uint32_t reserved[3];
  const char* metrics;   /* where this member answers requests for its metrics; NULL: nowhere */
  const char* directory; /* a folder in which members meet; NULL: SHMEM_EXCHANGE_DIR; "": none */
} shmemx_exchange_options_t;

/*
 * Without a directory, members meet in their network namespace. With one, those meet that have the same folder under
 * whatever path: processes of one machine in different network, PID, IPC, mount and user namespaces, such as containers
 * or pods with a common volume, if they are the same user outside. It is made if it does not exist, must belong to the
 * caller's user, and no other user may write to it. It has a socket and a lock for each member; those of a member that
 * was killed are taken over. On a local file system.
 */

/*
 * Metrics are OpenMetrics text, which GET /metrics of HTTP returns: what shmemx_exchange_stats says, and how long calls
 * took. `metrics` is a TCP port of 127.0.0.1 ("9400"), or an address and a port ("0.0.0.0:9400", "[::1]:9400"). Port 0
 * is a free one, which shmemx_exchange_stats names. Everyone who can connect can read them: there is no password. A
 * thread of its own answers, so clients that are slow or hostile delay no other call.
 */

/*
 * Joins the exchange `name`, which exists while it has members: 1 to 48 letters, digits, '.', '_' or '-'. Different
 * users, and different network namespaces or directories, have different exchanges of one name. `options` may be NULL:
 * all 0. When open returns, this member sees all others that have answered in time; those that come later appear by
 * themselves. Starts one thread, which sleeps unless members come or go. Errors: -EINVAL name, options; -EUSERS there
 * are 64 members already; -EMFILE, -ENOMEM, -EAGAIN no more descriptors, memory or threads; for `metrics` also
 * -EADDRINUSE, -EADDRNOTAVAIL, -EACCES the address cannot be used, -EOPNOTSUPP libmicrohttpd is missing; for
 * `directory` what mkdir and open return, -ENOTDIR, -EACCES it is not this user's alone. -EACCES also in a user
 * namespace whose number for all unknown users is this process's own: members could not tell its processes from theirs.
 */
SHMEM_API int shmemx_exchange_open(const char* name, const shmemx_exchange_options_t* options,
                                   shmemx_exchange_t** exchange) SHMEM_NOEXCEPT;

typedef struct shmemx_exchange_network_t {
  const char* listen;  /* "ip:port" or "host:port" of this node; port 0: any. NULL: an address of this node, any port */
  const char* members; /* where members of other nodes listen, with commas between; NULL: they connect to this one */
  const char* secret;  /* what all members know; NULL: SHMEM_UID_SECRET */
  uint32_t answer_ms;  /* how long calls wait for a member that does not answer, up to 600000; 0: 5000 */
  uint32_t reserved[5];
} shmemx_exchange_network_t;

/*
 * Connects this member with those of the same exchange on other nodes, through UCX. It listens, and looks for members
 * at the addresses in `members` for as long as the exchange is open; each that it finds tells of the others. Returns
 * when each address has answered or failed once, or after join_ms of open. From then on find, pull, members and list
 * also see the members of other nodes, on seats from 64 on, and those see the blocks of this one. Starts two threads,
 * which sleep when there is nothing to do, and UCX's own. Once for each exchange; open and other calls may go on.
 *
 * Both sides prove that they know the secret, and do not send it. Blocks are not encrypted: use it in a network where
 * you trust all who can listen. Errors: -EINVAL addresses, secret, options; -EACCES a member at one of the addresses
 * has another secret, or another version of libshmem or UCX (this member stays connected with the others; close it to
 * try another secret); -EISCONN it is connected already; -ENOTSUP libshmem was built without UCX, or UCX is missing;
 * -EADDRINUSE, -EADDRNOTAVAIL where to listen; -EMFILE, -ENFILE fewer than 64 descriptors are left, of which UCX needs
 * some (nothing has happened: connect again); -EIO UCX cannot be used.
 */
SHMEM_API int shmemx_exchange_connect(shmemx_exchange_t* exchange,
                                      const shmemx_exchange_network_t* network) SHMEM_NOEXCEPT;

/*
 * Writes where this member listens, as members of other nodes need it in `members`: "192.0.2.1:4711" and a 0. Returns
 * its length. Errors: -ENOTCONN shmemx_exchange_connect has not been called; -ERANGE `bytes` are too few (64 will do).
 */
SHMEM_API int shmemx_exchange_address(shmemx_exchange_t* exchange, char* text, size_t bytes) SHMEM_NOEXCEPT;

/*
 * Leaves the exchange. No other call on it is running; calls of other members go on, and find no blocks here any more.
 * Background pulls that have not begun end with -ECANCELED, and running ones end first. What other members have sent,
 * memory of theirs among it, may end a little later. NULL is ignored. In a forked process: does nothing.
 */
SHMEM_API void shmemx_exchange_close(shmemx_exchange_t* exchange) SHMEM_NOEXCEPT;

typedef struct shmemx_exchange_member_t {
  uint64_t id;     /* of this start of the process; never the same again */
  uint32_t seat;   /* 0 to 63, on other nodes 64 and more; a later member may get the seat of an earlier one */
  uint32_t pid;    /* as the kernel says, in this process's PID namespace; 0: in none that it sees. On other nodes: as
                      the member says */
  uint64_t blocks; /* published at the moment, as the member says */
  uint64_t bytes;  /* of those blocks */
  uint64_t most_blocks;
  uint64_t refusals; /* entries of this member that made no sense, and blocks whose memory could not be read */
} shmemx_exchange_member_t;

/*
 * Describes up to `capacity` of the other members, by seat. Returns the number of other members. Members on other nodes
 * are asked for the number of their blocks.
 */
SHMEM_API int shmemx_exchange_members(shmemx_exchange_t* exchange, shmemx_exchange_member_t* members,
                                      size_t capacity) SHMEM_NOEXCEPT;

/* ---- Blocks of this member ---- */

/* Memory that can be handed over: `bytes` at `offset` of the file behind `fd`. */
typedef struct shmemx_memory_t {
  void* address;  /* where this process has it mapped; the exchange does not use it */
  size_t bytes;   /* at least 1 */
  int fd;         /* a memfd, or a file in /dev/shm, another tmpfs or hugetlbfs; -1: new memory is made */
  int64_t offset; /* a multiple of the page size */
} shmemx_memory_t;

/*
 * Registers memory that the caller has, of which it may then publish blocks. `fd` is duplicated and may be closed. With
 * `fd` -1, `address` NULL and `offset` 0 the call makes memory of zeros and sets `address`; it is unmapped by
 * unregister or close. *region is the number for the calls below, never used twice. Up to 64 at a time.
 *
 * Readers map a memfd that is sealed against shrinking (F_SEAL_SHRINK), as new memory is, and copy with loads. Other
 * files are read by pread, since a mapping of a file that shrinks kills its reader: a system call for each block, which
 * is slower for small ones. Readers get the file open for reading only (where /proc allows that); seal a memfd with
 * F_SEAL_SHRINK and F_SEAL_FUTURE_WRITE after mapping it, and hostile ones cannot open it again to write it. Memory
 * that no descriptor names (of malloc, MAP_ANONYMOUS) cannot be registered.
 * Errors: -EINVAL; -EOPNOTSUPP another kind of file; -EFBIG the file is too small; -ENOSPC 64 regions, or 2^32 so far;
 * -ENOMEM.
 */
SHMEM_API int shmemx_exchange_register(shmemx_exchange_t* exchange, shmemx_memory_t* memory,
                                       uint32_t* region) SHMEM_NOEXCEPT;
/* The region's blocks have been withdrawn. Errors: -EBUSY there are some yet; -ENOENT no such region. */
SHMEM_API int shmemx_exchange_unregister(shmemx_exchange_t* exchange, uint32_t region) SHMEM_NOEXCEPT;

/* 1 to 128 bytes of any values. */
typedef struct shmemx_exchange_key_t {
  const void* data;
  size_t bytes;
} shmemx_exchange_key_t;

typedef struct shmemx_exchange_entry_t {
  shmemx_exchange_key_t key;
  uint32_t region;
  int32_t status;  /* set by the call */
  uint64_t offset; /* in the region */
  uint64_t bytes;  /* at least 1 */
  uint64_t layout; /* a number that stands for model, type, geometry: readers who expect another one get an error */
} shmemx_exchange_entry_t;

/*
 * Publishes blocks: from now on their bytes do not change until withdraw has returned 0. Blocks may overlap. Sets the
 * status of each and returns the number published, or -EINVAL for NULL. Statuses: 0; -EINVAL key, offset, bytes;
 * -ENOENT region; -EEXIST this member has published the key; -EBUSY it has withdrawn the key and withdraw has not
 * returned 0; -ENOSPC as many blocks as the options say; -ENOMEM.
 */
SHMEM_API int shmemx_exchange_publish(shmemx_exchange_t* exchange, shmemx_exchange_entry_t* entries,
                                      size_t count) SHMEM_NOEXCEPT;

/*
 * Withdraws the blocks of these keys: readers find them no more, and a pull that has not begun fails with -ESTALE.
 * Returns 0 when their memory may be changed: no reader has a lease of them. A lease ends when its reader releases it
 * or dies, or after the owner's lease_ms. Errors: -EBUSY some are still leased after timeout_ns (0: do not wait): call
 * again with the same keys (-ENOENT then only says that some were finished before, and the rest are withdrawn); -ENOENT
 * a key that this member has not published (the others are withdrawn); -EINVAL.
 */
SHMEM_API int shmemx_exchange_withdraw(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count,
                                       uint64_t timeout_ns) SHMEM_NOEXCEPT;

/* ---- Blocks of other members ---- */

/* Names a block as it was when it was found. Read `bytes`, `layout`, `member` and `status`; change nothing. */
typedef struct shmemx_exchange_block_t {
  uint64_t member; /* id of its owner */
  uint64_t epoch;  /* of the entry: it grows when the block is withdrawn, and when the entry is used again */
  uint64_t bytes;
  uint64_t layout;
  uint32_t seat;
  uint32_t slot;
  uint32_t lease; /* 0: none */
  int32_t status; /* 0, or why nothing was found: a negative errno */
} shmemx_exchange_block_t;

/*
 * Finds the blocks of `count` keys among all other members; blocks[i] is for keys[i]. Members without `refusals` come
 * first, then lower seats. With lease_ms > 0 each block that is found is leased for that time, or as long as its owner
 * allows, so that a later pull finds it unchanged. Release the leases. Returns the number found, or -EINVAL for NULL.
 * Statuses: 0; -ENOENT no member has the key; -EPROTOTYPE only blocks with another layout (`layout` 0: any will do);
 * -EDQUOT found, but only at owners of which this reader has as many leases as their quota says; -EINVAL key.
 */
SHMEM_API int shmemx_exchange_find(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count,
                                   uint64_t layout, uint32_t lease_ms, shmemx_exchange_block_t* blocks) SHMEM_NOEXCEPT;

/* Ends the leases of blocks; those without a lease are skipped. Sets `lease` to 0. -EINVAL: NULL. */
SHMEM_API int shmemx_exchange_release(shmemx_exchange_t* exchange, shmemx_exchange_block_t* blocks,
                                      size_t count) SHMEM_NOEXCEPT;

typedef struct shmemx_exchange_transfer_t shmemx_exchange_transfer_t;

/*
 * Pulls `count` blocks, of any members: blocks[i].bytes bytes to destinations[i], which overlap neither each other nor
 * registered memory. A block without a lease is leased while it is copied. Leases stay for the caller to release.
 *
 * With `transfer` NULL the calling thread copies, and the call returns when all is over. Otherwise a thread of the
 * exchange copies; `blocks` and `destinations` are copied by the call, while the memory and `statuses` belong to the
 * transfer until it is over. Transfers are executed in their order, but those with
 * blocks of other nodes among themselves: an owner that does not answer delays only them.
 *
 * statuses, which may be NULL, gets 0 or a negative errno for each block; the bytes of a destination that failed are
 * undefined. Returns 0 if all have arrived, else the error of the first that has not: -ESTALE the block was withdrawn
 * since it was found; -EOWNERDEAD its owner has ended or left; -ETIMEDOUT its owner, on another node, has not answered
 * for answer_ms, or has sent less than 64 KiB a second; -EBADMSG the owner's directory, or its answer, makes no sense;
 * -EIO its memory cannot be read; -EMFILE its memory was registered while this process had no descriptors left (pull
 * again when there are some); -EINVAL a block that was not found, a destination that is NULL, more than 2^30 blocks;
 * -EAGAIN as many transfers as the options say (nothing was started); -ENOMEM.
 */
SHMEM_API int shmemx_exchange_pull(shmemx_exchange_t* exchange, const shmemx_exchange_block_t* blocks,
                                   void* const* destinations, size_t count, int32_t* statuses,
                                   shmemx_exchange_transfer_t** transfer) SHMEM_NOEXCEPT;

/* -EINPROGRESS: not over; else what the blocking pull would have returned, or -ECANCELED: the exchange was closed. */
SHMEM_API int shmemx_exchange_test(shmemx_exchange_transfer_t* transfer) SHMEM_NOEXCEPT;
/* The same, after at most timeout_ns: -ETIMEDOUT: not over yet. */
SHMEM_API int shmemx_exchange_wait(shmemx_exchange_transfer_t* transfer, uint64_t timeout_ns) SHMEM_NOEXCEPT;
/*
 * Cancels a transfer that has not begun, waits for one that runs, and forgets it. Also after close. NULL is ignored. In
 * a forked process, in which no transfer runs: does nothing.
 */
SHMEM_API void shmemx_exchange_transfer_free(shmemx_exchange_transfer_t* transfer) SHMEM_NOEXCEPT;

/* A key as another member has it. */
typedef struct shmemx_exchange_name_t {
  uint32_t bytes;
  uint8_t data[SHMEMX_EXCHANGE_MOST_KEY_BYTES];
} shmemx_exchange_name_t;

/*
 * Lists blocks of the member on `seat`: up to `capacity`, from *cursor on, which is 0 at first and is moved past them.
 * Returns their number; 0: the end. Blocks that come or go meanwhile may be missing. Errors: -ENOENT the seat is free;
 * -EOWNERDEAD, -ETIMEDOUT the member, on another node, has ended or does not answer; -EINVAL.
 */
SHMEM_API int shmemx_exchange_list(shmemx_exchange_t* exchange, uint32_t seat, uint64_t* cursor,
                                   shmemx_exchange_name_t* names, shmemx_exchange_block_t* blocks,
                                   size_t capacity) SHMEM_NOEXCEPT;

/* ---- The holder: blocks that outlive the processes that made them ---- */

/*
 * An exchange may have one holder on each node: a member with memory for the blocks of all others, the engines. An
 * engine puts blocks, which the holder copies and publishes, and finds and pulls them as those of any member. When it
 * ends, or is killed, its blocks stay. Equal keys of equal layouts are stored once. When there is no room, the blocks
 * that were not put, found or pulled for the longest time go. A holder that is started again is found by all, and is
 * empty.
 *
 * No process but the holder can write its memory. An engine that is killed while it puts a block has published nothing.
 * Nothing waits for an engine. Calls to a holder that does not answer end after the time that
 * shmemx_exchange_use_holder says, and find and pull do not need its answers.
 */

/* Engines that share a limit. */
typedef struct shmemx_exchange_tenant_t {
  const char* name; /* up to 48 letters, digits, '.', '_' or '-' */
  uint64_t bytes;   /* the most that its blocks take */
} shmemx_exchange_tenant_t;

typedef struct shmemx_exchange_holding_t {
  uint64_t bytes; /* of memory for blocks, at least 1 MiB. It is taken as blocks need it */
  const shmemx_exchange_tenant_t* tenants;
  size_t tenant_count; /* up to 255; other tenants may have all, and those after the 256th count as "" */
  uint64_t reserved[4];
} shmemx_exchange_holding_t;

/*
 * Joins the exchange as shmemx_exchange_open does, and as its holder. Ends with shmemx_exchange_close, and with it all
 * of its blocks. Option `blocks`: how many; 0: one for each 16 KiB of memory, at least 65536. Starts one thread more.
 * Publish and withdraw are not for holders: -EPERM. Errors: those of open; -EADDRINUSE the exchange has a holder here
 * already; -ENOMEM more bytes than this machine, its control group or ulimit -v allow; -EINVAL.
 */
SHMEM_API int shmemx_exchange_hold(const char* name, const shmemx_exchange_options_t* options,
                                   const shmemx_exchange_holding_t* holding,
                                   shmemx_exchange_t** exchange) SHMEM_NOEXCEPT;

/*
 * How this member uses the holder, from now on: as one of the engines of `tenant`, NULL is "", and waiting for answers
 * for up to `answer_ms`, up to 60000; 0: 100. Without this call: "" and 100. -EINVAL.
 */
SHMEM_API int shmemx_exchange_use_holder(shmemx_exchange_t* exchange, const char* tenant,
                                         uint32_t answer_ms) SHMEM_NOEXCEPT;

/* Flags of a put. */
enum { SHMEMX_EXCHANGE_PIN = 1 /* not to be evicted, until it is unpinned */ };

typedef struct shmemx_exchange_put_t {
  shmemx_exchange_key_t key;
  const void* source; /* any memory of this process; it does not change during the call */
  uint64_t bytes;     /* at least 1; at most a quarter of the holder's memory, and 128 MiB */
  uint64_t layout;
  int32_t status; /* set by the call */
  uint32_t flags;
} shmemx_exchange_put_t;

/*
 * Puts blocks into the holder, and returns when it has answered: all members then find those whose status is 0. Sets
 * the status of each. Returns the number of those that the holder has: 0 or -EEXIST, it had the block already, with
 * this key, layout and size, and nothing was copied. Other statuses: -ENOSPC there is no room: what there is, is pinned
 * or read; -EDQUOT that is so of the tenant's part, or more than half of the memory would be pinned; -ENOMEM this
 * machine, or the holder's control group, has no more memory; -EBUSY another engine is putting the block, or it is
 * evicted and still read; -EMSGSIZE too large, or there with another size; -ESTALE a large block, of which no part has
 * come for a second; -EINVAL.
 *
 * If the holder has not answered all, returns the error instead, which is the status of those that were not answered
 * (and may be stored): -ENOTCONN there is no holder here; -ETIMEDOUT it does not answer, or did not a moment ago;
 * -EOWNERDEAD it has ended; -EPROTONOSUPPORT it has another version of libshmem; -EPROTO; -ENOMEM it has no memory, or
 * no descriptors, for a further engine.
 */
SHMEM_API int shmemx_exchange_put(shmemx_exchange_t* exchange, shmemx_exchange_put_t* puts,
                                  size_t count) SHMEM_NOEXCEPT;

/*
 * Evicts blocks of the holder, whoever has put them; `layout` 0: of all layouts. Statuses, which may be NULL: 0;
 * -ENOENT; -EBUSY it is pinned; -EINVAL. Returns how many have status 0, or what put returns.
 */
SHMEM_API int shmemx_exchange_discard(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count,
                                      uint64_t layout, int32_t* statuses) SHMEM_NOEXCEPT;
/* The same of all blocks of the caller's tenant that are not pinned. Returns 0 or an error. */
SHMEM_API int shmemx_exchange_discard_all(shmemx_exchange_t* exchange) SHMEM_NOEXCEPT;
/*
 * Pins blocks of the holder (`pinned` not 0), or unpins them. Also after the end of this process they are not evicted.
 * Statuses as of discard, and -EDQUOT: more than half of the holder's memory would be pinned.
 */
SHMEM_API int shmemx_exchange_pin(shmemx_exchange_t* exchange, const shmemx_exchange_key_t* keys, size_t count,
                                  uint64_t layout, int pinned, int32_t* statuses) SHMEM_NOEXCEPT;

typedef struct shmemx_exchange_holder_stats_t {
  uint64_t holder;      /* id of the member that is the holder */
  uint64_t engines;     /* connected now */
  uint64_t capacity;    /* bytes */
  uint64_t taken_bytes; /* of that, memory that it has taken so far */
  uint64_t blocks;      /* now, and their bytes */
  uint64_t bytes;
  uint64_t pinned_bytes;
  uint64_t writing_bytes; /* of ranges that engines write, of which nothing is published */
  uint64_t leaving_bytes; /* of evicted blocks that readers have leased */
  uint64_t stored;        /* blocks, ever */
  uint64_t there_already; /* puts of blocks that the holder had, and has answered so */
  uint64_t evicted;       /* to make room */
  uint64_t discarded;
  uint64_t refused; /* puts that failed */
  uint64_t reserved[4];
} shmemx_exchange_holder_stats_t;

/* What the holder says of itself. Errors: as put. */
SHMEM_API int shmemx_exchange_holder_stats(shmemx_exchange_t* exchange,
                                           shmemx_exchange_holder_stats_t* stats) SHMEM_NOEXCEPT;

enum { SHMEMX_EXCHANGE_STORED = 1, SHMEMX_EXCHANGE_REMOVED = 2 };

typedef struct shmemx_exchange_event_t {
  uint64_t number; /* 1 for the first of the holder, and one more for each */
  uint64_t layout;
  uint64_t bytes;
  uint32_t kind; /* SHMEMX_EXCHANGE_STORED, SHMEMX_EXCHANGE_REMOVED */
  shmemx_exchange_name_t key;
} shmemx_exchange_event_t;

/* How far events have been read. All 0 at first. */
typedef struct shmemx_exchange_position_t {
  uint64_t holder; /* id of the member */
  uint64_t number; /* of the last event */
} shmemx_exchange_position_t;

/*
 * Gets events of the holder: blocks that it has stored and removed, after `position`, which is moved past them. Waits
 * for the first for up to timeout_ns. Returns their number, 0: none so far.
 *
 * -EOVERFLOW: what happened before `position`, which was set, is not to be had as events: at the first call, if the
 * holder was started again, or if this process is 65536 events late. List the blocks of the member `position->holder`
 * (shmemx_exchange_list), then apply the events that follow to that list: one that it has seen already changes nothing.
 * Other errors: as put.
 */
SHMEM_API int shmemx_exchange_events(shmemx_exchange_t* exchange, shmemx_exchange_position_t* position,
                                     shmemx_exchange_event_t* events, size_t capacity,
                                     uint64_t timeout_ns) SHMEM_NOEXCEPT;

/* ---- Planning: which member shall have which blocks ---- */

/* What a member can take. */
typedef struct shmemx_exchange_share_t {
  uint64_t member; /* its id, or any number that no other member of the plan has */
  uint64_t room;   /* blocks that it can take besides those that it has */
  uint32_t weight; /* 0 to 1000: its part of the load is in proportion to it; 0: it gives away what it has */
  uint32_t reserved;
} shmemx_exchange_share_t;

/* Blocks that are of use together, and so move together: those of a sequence, for instance. */
typedef struct shmemx_exchange_load_t {
  uint64_t member; /* that has them */
  uint64_t load;   /* what to balance: their bytes, tokens, requests per second; 0: they stay */
  const shmemx_exchange_key_t* keys;
  size_t count; /* 1 or more; 0 if `load` is 0 */
  uint64_t to;  /* set by the call: the member that shall have them */
} shmemx_exchange_load_t;

/* loads[load].keys[key] goes from one member to another. */
typedef struct shmemx_exchange_move_t {
  uint64_t from;
  uint64_t to;
  size_t load;
  size_t key;
} shmemx_exchange_move_t;

/*
 * Plans moves after which the loads of members are in proportion to their weights as far as whole loads allow. The plan
 * is a function of the arguments alone: one process makes it, for any members, without them and without an exchange,
 * and tells them. Nothing moves. Each receiver finds, pulls and publishes the blocks of its moves; owners that do not
 * keep their copies withdraw them, once find says that another member has them.
 *
 * The planner is that of shmemx_kv_plan_balance (SHMEMX_KV_BALANCED): no load takes a member past its part, and a block
 * that its receiver has, or gets with another load, does not move. So `loads` list all blocks that members have, those
 * that must stay with load 0, and equal keys are equal blocks. With a `tolerance`, 0 to 1, members within this share
 * of the mean of their part are left alone, and others may take a member past its part by no more than that.
 *
 * Sets `to` of each load. Returns the number of moves, at most the number of keys, and writes the first `capacity` of
 * them, by receiver, then by load. Errors: -EINVAL a member or load that makes no sense, weights that are all 0, a sum
 * of loads times the sum of weights beyond 2^61, NULL; -ENOMEM.
 */
SHMEM_API int shmemx_exchange_plan(const shmemx_exchange_share_t* members, size_t member_count,
                                   shmemx_exchange_load_t* loads, size_t load_count, double tolerance,
                                   shmemx_exchange_move_t* moves, size_t capacity) SHMEM_NOEXCEPT;

/* ---- Counters of a member, since open ---- */

typedef struct shmemx_exchange_stats_t {
  uint64_t members; /* others, now */
  uint64_t readers; /* members that have this one's directory, now */
  uint64_t seat;
  uint64_t id;
  uint64_t blocks; /* published now, and their bytes */
  uint64_t bytes;
  uint64_t published; /* ever */
  uint64_t withdrawn;
  uint64_t leases_expired; /* blocks whose withdraw waited for a lease until its time was over */
  uint64_t refused;        /* connections of other users, or that did not follow the protocol or know the secret */
  uint64_t found;          /* keys */
  uint64_t missed;
  uint64_t pulled_blocks;
  uint64_t pulled_bytes;
  uint64_t failed_stale; /* pulls of a block, by cause */
  uint64_t failed_dead;
  uint64_t failed_corrupt;
  uint64_t failed_other;
  uint64_t over_quota;     /* leases, and transfers, that a quota refused */
  uint64_t metrics_port;   /* 0: none */
  uint64_t failed_timeout; /* as failed_stale: the owner, on another node, did not answer in time */
  uint64_t unreachable;    /* addresses given to connect at which no member has answered for 5 s, now */
  uint64_t reserved[2];
} shmemx_exchange_stats_t;

/* Fills all of `stats`. The numbers are not of one moment. -EINVAL: NULL. */
SHMEM_API int shmemx_exchange_stats(shmemx_exchange_t* exchange, shmemx_exchange_stats_t* stats) SHMEM_NOEXCEPT;

/*
 * The same of the member on `seat`, as that member says, but not its members, readers and metrics_port, which are 0.
 * Errors: -ENOENT no member is on that seat; -ENOTSUP the member is on another node; -EINVAL.
 */
SHMEM_API int shmemx_exchange_member_stats(shmemx_exchange_t* exchange, uint32_t seat,
                                           shmemx_exchange_stats_t* stats) SHMEM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
