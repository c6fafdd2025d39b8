/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host calls of Ascend SHMEM for starting and ending, memory and teams, on top of shmem.h and shmemx.h, so that a
 * host program written for that library compiles; in C++ also what its kernels call to synchronise
 * (aclshmem_device.h). Adds names of that library only, nearly all of them aclshmem* and ACLSHMEM*. All are inline:
 * there is nothing to link but libshmem.
 *
 * A vector core of the NPU is a thread here, a stream is a thread that works off a queue, and memory is of one kind:
 * host side and device side are the same heap. Calls that give an int give ACLSHMEM_SUCCESS or one of the codes below;
 * shmemx_error_text() then says what went wrong. Collective calls, thread safety and ownership: as the calls of shmem.h
 * and shmemx.h of the same names.
 */
#ifndef SHMEM_ACLSHMEM_H
#define SHMEM_ACLSHMEM_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shmem.h"
#include "shmem_device.h"
#include "shmemx.h"

/* ---- Return codes ---- */
#define ACLSHMEM_SUCCESS 0
#define ACLSHMEM_INVALID_PARAM (-1)
#define ACLSHMEM_INVALID_VALUE (-2)
#define ACLSHMEM_SMEM_ERROR (-3)
#define ACLSHMEM_INNER_ERROR (-4)
#define ACLSHMEM_NOT_INITED (-5)
#define ACLSHMEM_BOOTSTRAP_ERROR (-6)
#define ACLSHMEM_TIMEOUT_ERROR (-7)
#define ACLSHMEM_MALLOC_FAILED (-8)
#define ACLSHMEM_DL_FUNC_FAILED (-9)
#define ACLSHMEM_INNER_TIMEOUT (-10)
#define ACLSHMEM_UNDER_API_UNLOAD (-11)
#define ACLSHMEM_NOT_SUPPORTED (-100)

/* ---- Types and constants ---- */
#define ACLSHMEM_MAX_PES SHMEMX_MAX_PES
#define ACLSHMEM_MAX_IP_PORT_LEN 64
#define ACLSHMEM_MAX_LOCAL_SIZE (40ULL << 30)
#define ACLSHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN

typedef shmem_team_t aclshmem_team_t;
#define ACLSHMEM_TEAM_INVALID SHMEM_TEAM_INVALID
#define ACLSHMEM_TEAM_WORLD SHMEM_TEAM_WORLD

#define ACLSHMEM_CMP_EQ SHMEM_CMP_EQ
#define ACLSHMEM_CMP_NE SHMEM_CMP_NE
#define ACLSHMEM_CMP_GT SHMEM_CMP_GT
#define ACLSHMEM_CMP_GE SHMEM_CMP_GE
#define ACLSHMEM_CMP_LT SHMEM_CMP_LT
#define ACLSHMEM_CMP_LE SHMEM_CMP_LE
#define ACLSHMEM_SIGNAL_SET SHMEM_SIGNAL_SET
#define ACLSHMEM_SIGNAL_ADD SHMEM_SIGNAL_ADD

enum {
  ACLSHMEM_STATUS_NOT_INITIALIZED = 0,
  ACLSHMEM_STATUS_SHM_CREATED = 1, /* never seen here */
  ACLSHMEM_STATUS_IS_INITIALIZED = 2,
  ACLSHMEM_STATUS_INVALID = INT_MAX
};

typedef enum { HOST_SIDE = 0, DEVICE_SIDE = 1 } aclshmem_mem_type_t;

typedef enum {
  ACLSHMEMX_INIT_WITH_DEFAULT = 1 << 0, /* ip_port if it is not "", else the unique id in comm_args */
  ACLSHMEMX_INIT_WITH_MPI = 1 << 1,
  ACLSHMEMX_INIT_WITH_UNIQUEID = 1 << 3
} aclshmemx_bootstrap_t;

/* Which engine moves data. All of them are load and store here; only whether the mask makes sense is looked at. */
typedef enum {
  ACLSHMEM_DATA_OP_MTE = 1,
  ACLSHMEM_DATA_OP_SDMA = 2,
  ACLSHMEM_DATA_OP_ROCE = 4,
  ACLSHMEM_DATA_OP_UDMA = 8
} data_op_engine_type_t;

typedef struct {
  int version;
  data_op_engine_type_t data_op_engine_type;
  uint32_t shm_init_timeout;          /* seconds to wait for the others at start, above 0 */
  uint32_t shm_create_timeout;        /* above 0; the same wait here */
  uint32_t control_operation_timeout; /* above 0; a PE that dies ends the waits of the others, however long this is */
  int32_t sockFd;                     /* not used here: the listening socket stays inside the library */
} aclshmem_init_optional_attr_t;
#define ACLSHMEM_DEFAULT_TIMEOUT 120
#define ACLSHMEM_INIT_OPTIONAL_ATTR_INITIALIZER                                                             \
  {                                                                                                         \
    (1 << 16) + (int)sizeof(aclshmem_init_optional_attr_t), ACLSHMEM_DATA_OP_MTE, ACLSHMEM_DEFAULT_TIMEOUT, \
        ACLSHMEM_DEFAULT_TIMEOUT, ACLSHMEM_DEFAULT_TIMEOUT, -1                                              \
  }

typedef struct {
  int my_pe;
  int n_pes;
  char ip_port[ACLSHMEM_MAX_IP_PORT_LEN]; /* "tcp://1.2.3.4:port", "tcp6://[address]:port", or "" */
  uint64_t local_mem_size;                /* bytes of symmetric heap, 1 to ACLSHMEM_MAX_LOCAL_SIZE */
  aclshmem_init_optional_attr_t option_attr;
  void* comm_args;      /* the aclshmemx_uniqueid_t, or the address of an MPI_Comm */
  uint64_t instance_id; /* 0: there is one instance here */
} aclshmemx_init_attr_t;

typedef struct {
  int32_t version;
  int my_pe;
  int n_pes;
  char internal[124];
} aclshmemx_uniqueid_t;
#define ACLSHMEM_UNIQUEID_INITIALIZER \
  {                                   \
    SHMEMX_UNIQUEID_VERSION, 0, 0, {  \
      0                               \
    }                                 \
  }

typedef int (*aclshmem_decrypt_handler)(const char* cipher, size_t cipher_length, char* plain, size_t* plain_length);

typedef struct {
  uint64_t id;
  void* instance;
} aclshmem_instance_ctx;

typedef struct {
  int version;
  int num_contexts;
  uint64_t uniqueid;
  char padding[48];
} aclshmem_team_config_t;

/* As in acl/acl_rt.h, which may be included too. */
typedef void* aclrtStream;

#ifdef __cplusplus
#define ACLSHMEM_INLINE inline
#define ACLSHMEM_DEFAULT_VALUE(value) = value
#else
#define ACLSHMEM_INLINE static inline
#define ACLSHMEM_DEFAULT_VALUE(value)
#endif

/* A negative errno as one of the codes above. */
ACLSHMEM_INLINE int aclshmemi_code(int error) SHMEM_NOEXCEPT {
  switch (-error) {
    case 0:
      return ACLSHMEM_SUCCESS;
    case EINVAL:
      return ACLSHMEM_INVALID_PARAM;
    case ENOMEM:
      return ACLSHMEM_MALLOC_FAILED;
    case ENOTSUP:
      return ACLSHMEM_NOT_SUPPORTED;
    case ETIMEDOUT:
      return ACLSHMEM_TIMEOUT_ERROR;
    case EACCES:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EOWNERDEAD:
      return ACLSHMEM_BOOTSTRAP_ERROR;
    default:
      return ACLSHMEM_INNER_ERROR;
  }
}
ACLSHMEM_INLINE int aclshmemi_running(void) SHMEM_NOEXCEPT {
  return shmemx_init_status() == SHMEMX_STATUS_IS_INITIALIZED;
}

/* ---- Starting and ending ---- */

ACLSHMEM_INLINE int aclshmemx_init_status(void) SHMEM_NOEXCEPT {
  return shmemx_init_status();
}

/* One PE calls it and sends the bytes to the others (see shmemx_get_uniqueid). */
ACLSHMEM_INLINE int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t* uid) SHMEM_NOEXCEPT {
  shmemx_uniqueid_t ours = SHMEMX_UNIQUEID_INITIALIZER;
  if (uid == NULL) return ACLSHMEM_INVALID_PARAM;
  const int error = shmemx_get_uniqueid(&ours);
  uid->version = ours.version;
  uid->my_pe = 0;
  uid->n_pes = 0;
  memcpy(uid->internal, ours.internal, sizeof uid->internal);
  return aclshmemi_code(error);
}

ACLSHMEM_INLINE int aclshmemx_set_attr_uniqueid_args(int my_pe, int n_pes, int64_t local_mem_size,
                                                     aclshmemx_uniqueid_t* uid,
                                                     aclshmemx_init_attr_t* attr) SHMEM_NOEXCEPT {
  const aclshmem_init_optional_attr_t options = ACLSHMEM_INIT_OPTIONAL_ATTR_INITIALIZER;
  if (uid == NULL || attr == NULL || n_pes < 1 || n_pes > ACLSHMEM_MAX_PES || my_pe < 0 || my_pe >= n_pes ||
      local_mem_size < 1) {
    return ACLSHMEM_INVALID_PARAM;
  }
  memset(attr, 0, sizeof *attr);
  uid->my_pe = my_pe;
  uid->n_pes = n_pes;
  attr->my_pe = my_pe;
  attr->n_pes = n_pes;
  attr->local_mem_size = (uint64_t)local_mem_size;
  attr->option_attr = options;
  attr->comm_args = uid;
  return ACLSHMEM_SUCCESS;
}

ACLSHMEM_INLINE int aclshmemi_check_attr(const aclshmemx_init_attr_t* attr) SHMEM_NOEXCEPT {
  const int engines = ACLSHMEM_DATA_OP_MTE | ACLSHMEM_DATA_OP_SDMA | ACLSHMEM_DATA_OP_ROCE | ACLSHMEM_DATA_OP_UDMA;
  if (attr->n_pes < 1 || attr->n_pes > ACLSHMEM_MAX_PES || attr->my_pe < 0 || attr->my_pe >= attr->n_pes) {
    return ACLSHMEM_INVALID_VALUE;
  }
  if (attr->local_mem_size < 1 || attr->local_mem_size > ACLSHMEM_MAX_LOCAL_SIZE) return ACLSHMEM_INVALID_VALUE;
  if (attr->option_attr.shm_init_timeout == 0 || attr->option_attr.shm_create_timeout == 0 ||
      attr->option_attr.control_operation_timeout == 0) {
    return ACLSHMEM_INVALID_VALUE;
  }
  if (attr->option_attr.data_op_engine_type == 0 || ((int)attr->option_attr.data_op_engine_type & ~engines) != 0) {
    return ACLSHMEM_INVALID_VALUE;
  }
  return attr->instance_id == 0 ? ACLSHMEM_SUCCESS : ACLSHMEM_NOT_SUPPORTED;
}

/* Collective over the job. ACLSHMEM_INNER_ERROR if the library runs. */
ACLSHMEM_INLINE int aclshmemx_init_attr(aclshmemx_bootstrap_t flags, aclshmemx_init_attr_t* attr) SHMEM_NOEXCEPT {
  shmemx_init_attr_t ours = SHMEMX_INIT_ATTR_INITIALIZER;
  shmemx_uniqueid_t uid = SHMEMX_UNIQUEID_INITIALIZER;
  if (attr == NULL) return ACLSHMEM_INVALID_PARAM;
  const int wrong = aclshmemi_check_attr(attr);
  if (wrong != ACLSHMEM_SUCCESS) return wrong;
  ours.my_pe = attr->my_pe;
  ours.n_pes = attr->n_pes;
  memcpy(ours.ip_port, attr->ip_port, sizeof ours.ip_port);
  ours.local_mem_size = attr->local_mem_size;
  ours.shm_init_timeout = attr->option_attr.shm_init_timeout;
  ours.comm_args = attr->comm_args;
  if (attr->comm_args != NULL && flags != ACLSHMEMX_INIT_WITH_MPI) {
    const aclshmemx_uniqueid_t* theirs = (const aclshmemx_uniqueid_t*)attr->comm_args;
    uid.version = theirs->version;
    memcpy(uid.internal, theirs->internal, sizeof uid.internal);
    ours.comm_args = &uid;
  }
  return aclshmemi_code(shmemx_init_attr((unsigned int)flags, &ours));
}

/* Collective over the job. */
ACLSHMEM_INLINE int aclshmem_finalize(void) SHMEM_NOEXCEPT {
  if (!aclshmemi_running()) return ACLSHMEM_NOT_INITED;
  shmem_finalize();
  return ACLSHMEM_SUCCESS;
}
ACLSHMEM_INLINE int aclshmemx_finalize(uint64_t instance_id) SHMEM_NOEXCEPT {
  return instance_id == 0 ? aclshmem_finalize() : ACLSHMEM_NOT_SUPPORTED;
}
ACLSHMEM_INLINE void aclshmem_info_get_version(int* major, int* minor) SHMEM_NOEXCEPT {
  shmem_info_get_version(major, minor);
}
ACLSHMEM_INLINE void aclshmem_info_get_name(char* name) SHMEM_NOEXCEPT {
  shmem_info_get_name(name);
}
ACLSHMEM_INLINE void aclshmem_global_exit(int status) SHMEM_NOEXCEPT {
  shmem_global_exit(status);
}

/* The PEs of a job meet without TLS here: asking for it is refused rather than ignored. */
ACLSHMEM_INLINE int32_t aclshmemx_set_conf_store_tls(bool enable, const char* tls_info,
                                                     uint32_t length) SHMEM_NOEXCEPT {
  (void)tls_info;
  (void)length;
  return enable ? ACLSHMEM_NOT_SUPPORTED : ACLSHMEM_SUCCESS;
}
ACLSHMEM_INLINE int32_t aclshmemx_set_config_store_tls_key(const char* private_key, uint32_t private_key_length,
                                                           const char* password, uint32_t password_length,
                                                           aclshmem_decrypt_handler handler) SHMEM_NOEXCEPT {
  (void)private_key;
  (void)private_key_length;
  (void)password;
  (void)password_length;
  (void)handler;
  return ACLSHMEM_NOT_SUPPORTED;
}

/* Each message of the library goes to `logger`, or with NULL to standard error. */
ACLSHMEM_INLINE int32_t aclshmemx_set_extern_logger(void (*logger)(int level, const char* text)) SHMEM_NOEXCEPT {
  shmemx_set_logger(logger);
  return ACLSHMEM_SUCCESS;
}
/* 0 debug, 1 info, 2 warn, 3 error, 4 fatal. */
ACLSHMEM_INLINE int32_t aclshmemx_set_log_level(int level) SHMEM_NOEXCEPT {
  return aclshmemi_code(shmemx_set_log_level(level));
}

/* There is one instance, 0. */
ACLSHMEM_INLINE aclshmem_instance_ctx* aclshmemx_instance_ctx_get(void) SHMEM_NOEXCEPT {
  static aclshmem_instance_ctx context = {0, NULL};
  return aclshmemi_running() ? &context : NULL;
}
ACLSHMEM_INLINE int aclshmemx_instance_ctx_set(uint64_t id) SHMEM_NOEXCEPT {
  return id == 0 ? ACLSHMEM_SUCCESS : ACLSHMEM_NOT_SUPPORTED;
}

/* ---- Memory. NULL before aclshmemx_init_attr. ---- */

ACLSHMEM_INLINE void* aclshmem_malloc(size_t size) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_malloc(size) : NULL;
}
ACLSHMEM_INLINE void* aclshmem_calloc(size_t count, size_t size) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_calloc(count, size) : NULL;
}
ACLSHMEM_INLINE void* aclshmem_align(size_t alignment, size_t size) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_align(alignment, size) : NULL;
}
ACLSHMEM_INLINE void aclshmem_free(void* ptr) SHMEM_NOEXCEPT {
  if (aclshmemi_running()) shmem_free(ptr);
}
ACLSHMEM_INLINE int aclshmemi_is_mem_type(aclshmem_mem_type_t type) SHMEM_NOEXCEPT {
  return type == HOST_SIDE || type == DEVICE_SIDE;
}
/* As those above: host side and device side are one heap. NULL for any other type. */
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
  if (aclshmemi_is_mem_type(type)) aclshmem_free(ptr);
}
/* Where this PE's heap begins. */
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
  return aclshmemi_running() ? shmem_team_my_pe(team) : -1;
}
ACLSHMEM_INLINE int aclshmem_team_n_pes(aclshmem_team_t team) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_team_n_pes(team) : -1;
}
/* A PE that is not in the new team gets ACLSHMEM_TEAM_INVALID and success. */
ACLSHMEM_INLINE int aclshmem_team_split_strided(aclshmem_team_t parent_team, int pe_start, int pe_stride, int pe_size,
                                                aclshmem_team_t* new_team) SHMEM_NOEXCEPT {
  if (!aclshmemi_running()) return ACLSHMEM_NOT_INITED;
  return aclshmemi_code(shmemx_team_split_strided(parent_team, pe_start, pe_stride, pe_size, new_team));
}
ACLSHMEM_INLINE int aclshmem_team_split_2d(aclshmem_team_t parent_team, int x_range, aclshmem_team_t* x_team,
                                           aclshmem_team_t* y_team) SHMEM_NOEXCEPT {
  if (!aclshmemi_running()) return ACLSHMEM_NOT_INITED;
  return aclshmemi_code(shmemx_team_split_2d(parent_team, x_range, x_team, y_team));
}
ACLSHMEM_INLINE int aclshmem_team_translate_pe(aclshmem_team_t src_team, int src_pe,
                                               aclshmem_team_t dest_team) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmem_team_translate_pe(src_team, src_pe, dest_team) : -1;
}
ACLSHMEM_INLINE void aclshmem_team_destroy(aclshmem_team_t team) SHMEM_NOEXCEPT {
  if (aclshmemi_running()) shmem_team_destroy(team);
}
ACLSHMEM_INLINE int aclshmem_team_get_config(aclshmem_team_t team, aclshmem_team_config_t* config) SHMEM_NOEXCEPT {
  shmem_team_config_t ours = {0};
  if (!aclshmemi_running()) return ACLSHMEM_NOT_INITED;
  if (config == NULL) return ACLSHMEM_INVALID_PARAM;
  const int error = shmemx_team_get_config(team, &ours);
  if (error != 0) return aclshmemi_code(error);
  memset(config, 0, sizeof *config);
  config->version = 1;
  config->num_contexts = ours.num_contexts;
  return ACLSHMEM_SUCCESS;
}

/* ---- Barriers and streams ---- */

ACLSHMEM_INLINE void aclshmem_barrier_all(void) SHMEM_NOEXCEPT {
  shmem_barrier_all();
}
ACLSHMEM_INLINE void aclshmem_sync_all(void) SHMEM_NOEXCEPT {
  shmem_sync_all();
}
/* A team of -1 does nothing. */
ACLSHMEM_INLINE void aclshmem_barrier(aclshmem_team_t team) SHMEM_NOEXCEPT {
  if (team != ACLSHMEM_TEAM_INVALID) shmemx_team_barrier(team);
}
ACLSHMEM_INLINE void aclshmem_sync(aclshmem_team_t team) SHMEM_NOEXCEPT {
  if (team != ACLSHMEM_TEAM_INVALID) shmem_team_sync(team);
}
/* In the order of the stream, which shmemx_stream_create made; NULL: a stream that the library has. What goes wrong is
 * told by shmemx_stream_synchronize. */
ACLSHMEM_INLINE void aclshmemx_barrier_on_stream(aclshmem_team_t team, aclrtStream stream) SHMEM_NOEXCEPT {
  if (team != ACLSHMEM_TEAM_INVALID) shmemx_barrier_on_stream(team, (shmemx_stream_t*)stream);
}
ACLSHMEM_INLINE void aclshmemx_barrier_all_on_stream(aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_barrier_on_stream(SHMEM_TEAM_WORLD, (shmemx_stream_t*)stream);
}
ACLSHMEM_INLINE void aclshmemx_quiet_on_stream(aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_quiet_on_stream((shmemx_stream_t*)stream);
}
/* What is waited for: the transfers that PEs of this team have started. */
typedef struct {
  aclshmem_team_t team_id;
} aclshmem_handle_t;
/* In the order of the stream: completes this PE's transfers, then everybody of the team has come. */
ACLSHMEM_INLINE void aclshmemx_handle_wait(aclshmem_handle_t handle, aclrtStream stream) SHMEM_NOEXCEPT {
  aclshmemx_barrier_on_stream(handle.team_id, stream);
}
ACLSHMEM_INLINE void aclshmemx_putmem_on_stream(void* dst, void* src, size_t bytes, int32_t pe,
                                                aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_putmem_on_stream(dst, src, bytes, pe, (shmemx_stream_t*)stream);
}
ACLSHMEM_INLINE void aclshmemx_getmem_on_stream(void* dst, void* src, size_t bytes, int32_t pe,
                                                aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_getmem_on_stream(dst, src, bytes, pe, (shmemx_stream_t*)stream);
}

/* The word that kernels are given: see shmemx_get_ffts_config in shmem_device.h. */
ACLSHMEM_INLINE uint64_t util_get_ffts_config(void) SHMEM_NOEXCEPT {
  return shmemx_get_ffts_config();
}

#ifdef __cplusplus
#include "aclshmem_device.h" /* IWYU pragma: export */
#endif

/* NOLINTEND(modernize-use-nullptr) */
#endif
