/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: codes, constants and types. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_TYPES_H
#define SHMEM_ACLSHMEM_TYPES_H

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
#include "shmemx_interface.h"

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
/* For programs that compute the size of their heap: a page, and what the library adds to a heap (here: beside it). */
#define ACLSHMEM_PAGE_SIZE (2UL << 20)
#define ACLSHMEM_EXTRA_SIZE 0UL
/* Bytes of scratch that engines need there. */
#define ACLSHMEMI_SDMA_SCRATCH_SIZE 64U
#define ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE 128U
#define ACLSHMEM_UDMA_MTE_STAGING_UB_SIZE 128U
#define ACLSHMEM_MAX_QP_NUM 32
/* As the headers of that library's release 1.5.1 have them. */
#define ACLSHMEM_MAJOR_VERSION 1
#define ACLSHMEM_MINOR_VERSION 1
#define ACLSHMEM_VENDOR_MAJOR_VER 1
#define ACLSHMEM_VENDOR_MINOR_VER 1
#define ACLSHMEM_VENDOR_PATCH_VER 1
#define ACLSHMEM_MAX_PES SHMEMX_MAX_PES
#define ACLSHMEM_MAX_TEAMS SHMEMX_MAX_TEAMS
#define ACLSHMEM_MAX_IP_PORT_LEN 64
#define ACLSHMEM_MAX_LOCAL_SIZE (40ULL << 30)
#define ACLSHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN

/* A number; shmemx_team_by_number() gives OpenSHMEM's handle. */
typedef int aclshmem_team_t;
#define ACLSHMEM_TEAM_INVALID (-1)
#define ACLSHMEM_TEAM_WORLD 0

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
  ACLSHMEMX_INIT_WITH_UNIQUEID = 1 << 3,
  ACLSHMEMX_INIT_MAX = INT_MIN /* 1 << 31: none */
} aclshmemx_bootstrap_t;

/* The engine that moves data. All are alike here; only the mask is checked. */
typedef enum {
  ACLSHMEM_TRANSPORT_MTE = 1,
  ACLSHMEM_TRANSPORT_ROCE = 2,
  ACLSHMEM_TRANSPORT_SDMA = 4,
  ACLSHMEM_TRANSPORT_UDMA = 8
} aclshmem_transport_t;
typedef enum {
  ACLSHMEM_DATA_OP_MTE = 1,
  ACLSHMEM_DATA_OP_SDMA = 2,
  ACLSHMEM_DATA_OP_ROCE = 4,
  ACLSHMEM_DATA_OP_UDMA = 8,
  ACLSHMEM_DATA_OP_MAX = ACLSHMEM_DATA_OP_UDMA
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

/* Programs may omit later members: in C++ these have defaults (from C++14 on, where such a struct is an aggregate). */
#if defined(__cplusplus) && __cplusplus >= 201402L
#define ACLSHMEMI_INITIAL(value) = value
#else
#define ACLSHMEMI_INITIAL(value)
#endif
typedef struct aclshmemx_init_attr_t {
  int my_pe ACLSHMEMI_INITIAL(0);
  int n_pes ACLSHMEMI_INITIAL(0);
  /* "tcp://1.2.3.4:port", "tcp6://[address]:port", or "" */
  char ip_port[ACLSHMEM_MAX_IP_PORT_LEN] ACLSHMEMI_INITIAL({0});
  /* bytes of symmetric heap, 1 to ACLSHMEM_MAX_LOCAL_SIZE */
  uint64_t local_mem_size ACLSHMEMI_INITIAL(0);
  aclshmem_init_optional_attr_t option_attr ACLSHMEMI_INITIAL(ACLSHMEM_INIT_OPTIONAL_ATTR_INITIALIZER);
  void* comm_args ACLSHMEMI_INITIAL(0);      /* the aclshmemx_uniqueid_t, or the address of an MPI_Comm */
  uint64_t instance_id ACLSHMEMI_INITIAL(0); /* 0: there is one instance here */
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

#ifdef __cplusplus
typedef int (*aclshmem_decrypt_handler)(const char* cipher, size_t cipher_length, char* plain, size_t& plain_length);
#else
typedef int (*aclshmem_decrypt_handler)(const char* cipher, size_t cipher_length, char* plain, size_t* plain_length);
#endif

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
#define ACLSHMEM_DEVICE inline
#define ACLSHMEM_GLOBAL
#define ACLSHMEM_HOST_API
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
/* The same for collective calls: they follow the work of the stream NULL. */
ACLSHMEM_INLINE int aclshmemi_ready(void) SHMEM_NOEXCEPT {
  shmemx_await_default_stream();
  return aclshmemi_running();
}

/* ---- The types of the calls: LIST(X) is X(NAME, type) for each ---- */

#define ACLSHMEM_HOST_TYPES(X) \
  X(float, float)              \
  X(double, double)            \
  X(int8, int8_t)              \
  X(int16, int16_t)            \
  X(int32, int32_t)            \
  X(int64, int64_t)            \
  X(uint8, uint8_t)            \
  X(uint16, uint16_t)          \
  X(uint32, uint32_t)          \
  X(uint64, uint64_t)          \
  X(char, char)

/* Waiting: X(NAME, type, SHMEMX_...). */
#define ACLSHMEM_WAIT_TYPES(X)       \
  X(float, float, SHMEMX_FLOAT)      \
  X(int8, int8_t, SHMEMX_INT8)       \
  X(int16, int16_t, SHMEMX_INT16)    \
  X(int32, int32_t, SHMEMX_INT32)    \
  X(int64, int64_t, SHMEMX_INT64)    \
  X(uint8, uint8_t, SHMEMX_UINT8)    \
  X(uint16, uint16_t, SHMEMX_UINT16) \
  X(uint32, uint32_t, SHMEMX_UINT32) \
  X(uint64, uint64_t, SHMEMX_UINT64) \
  X(char, char, ACLSHMEMI_CHAR)
#define ACLSHMEMI_CHAR (CHAR_MIN < 0 ? SHMEMX_INT8 : SHMEMX_UINT8)

/* NOLINTEND(modernize-use-nullptr) */
#endif
