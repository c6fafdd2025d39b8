/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The older names of Ascend SHMEM's host calls (shmem_api.h) that OpenSHMEM does not use otherwise: starting and
 * ending. Memory, teams and barriers had OpenSHMEM's names even then; the forms that differ from
 * OpenSHMEM's are in shmem_overloads.h, in C++. Puts and gets by their older names: shmem_old_rma.h.
 */
#ifndef SHMEM_ASCEND_SHMEM_API_H
#define SHMEM_ASCEND_SHMEM_API_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include "shmem.h"

#define SHMEM_SUCCESS ACLSHMEM_SUCCESS
#define SHMEM_INVALID_PARAM ACLSHMEM_INVALID_PARAM
#define SHMEM_INVALID_VALUE ACLSHMEM_INVALID_VALUE
#define SHMEM_SMEM_ERROR ACLSHMEM_SMEM_ERROR
#define SHMEM_INNER_ERROR ACLSHMEM_INNER_ERROR
#define SHMEM_NOT_INITED ACLSHMEM_NOT_INITED

#define SHMEM_MAX_RANKS ACLSHMEM_MAX_PES

typedef aclshmemx_uniqueid_t shmem_uniqueid_t;
typedef aclshmem_decrypt_handler shmem_decrypt_handler;

typedef struct {
  int my_rank;
  int n_ranks;
  char ip_port[ACLSHMEM_MAX_IP_PORT_LEN];
  uint64_t local_mem_size;
  aclshmem_init_optional_attr_t option_attr;
  void* comm_args;
} shmem_init_attr_t;

ACLSHMEM_INLINE int shmem_set_attr(int my_rank, int n_ranks, uint64_t local_mem_size, const char* ip_port,
                                   shmem_init_attr_t* attr) SHMEM_NOEXCEPT {
  const aclshmem_init_optional_attr_t options = ACLSHMEM_INIT_OPTIONAL_ATTR_INITIALIZER;
  if (attr == NULL || ip_port == NULL || strlen(ip_port) >= sizeof attr->ip_port) {
    return SHMEM_INVALID_PARAM;
  }
  memset(attr, 0, sizeof *attr);
  attr->my_rank = my_rank;
  attr->n_ranks = n_ranks;
  attr->local_mem_size = local_mem_size;
  memcpy(attr->ip_port, ip_port, strlen(ip_port));
  attr->option_attr = options;
  return SHMEM_SUCCESS;
}

ACLSHMEM_INLINE int shmem_set_data_op_engine_type(shmem_init_attr_t* attr, data_op_engine_type_t type) SHMEM_NOEXCEPT {
  if (attr == NULL) {
    return SHMEM_INVALID_PARAM;
  }
  attr->option_attr.data_op_engine_type = type;
  return SHMEM_SUCCESS;
}

ACLSHMEM_INLINE int shmem_set_timeout(shmem_init_attr_t* attr, uint32_t seconds) SHMEM_NOEXCEPT {
  if (attr == NULL || seconds == 0) {
    return SHMEM_INVALID_PARAM;
  }
  attr->option_attr.shm_init_timeout = seconds;
  attr->option_attr.shm_create_timeout = seconds;
  attr->option_attr.control_operation_timeout = seconds;
  return SHMEM_SUCCESS;
}

ACLSHMEM_INLINE int shmem_get_uniqueid(shmem_uniqueid_t* uid) SHMEM_NOEXCEPT {
  return aclshmemx_get_uniqueid(uid);
}

ACLSHMEM_INLINE int shmem_set_attr_uniqueid_args(int my_rank, int n_ranks, const shmem_uniqueid_t* uid,
                                                 shmem_init_attr_t* attr) SHMEM_NOEXCEPT {
  if (uid == NULL || attr == NULL) {
    return SHMEM_INVALID_PARAM;
  }
  attr->my_rank = my_rank;
  attr->n_ranks = n_ranks;
  attr->ip_port[0] = '\0';
  attr->comm_args = (void*)(uintptr_t)uid; /* NOLINT(performance-no-int-to-ptr) */
  return SHMEM_SUCCESS;
}

/* Collective over the job. By ip_port, or by the unique id if there is one. */
ACLSHMEM_INLINE int shmem_init_attr(shmem_init_attr_t* attr) SHMEM_NOEXCEPT {
  aclshmemx_init_attr_t today;
  if (attr == NULL) {
    return SHMEM_INVALID_PARAM;
  }
  memset((void*)&today, 0, sizeof today);
  today.my_pe = attr->my_rank;
  today.n_pes = attr->n_ranks;
  memcpy(today.ip_port, attr->ip_port, sizeof today.ip_port);
  today.local_mem_size = attr->local_mem_size;
  today.option_attr = attr->option_attr;
  today.comm_args = attr->comm_args;
  return aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &today);
}

ACLSHMEM_INLINE int shmem_init_status(void) SHMEM_NOEXCEPT {
  return aclshmemx_init_status();
}

ACLSHMEM_INLINE int32_t shmem_set_conf_store_tls(bool enable, const char* tls_info, uint32_t length) SHMEM_NOEXCEPT {
  return aclshmemx_set_conf_store_tls(enable, tls_info, length);
}
ACLSHMEM_INLINE int32_t shmem_set_config_store_tls_key(const char* private_key, uint32_t private_key_length,
                                                       const char* password, uint32_t password_length,
                                                       shmem_decrypt_handler handler) SHMEM_NOEXCEPT {
  return aclshmemx_set_config_store_tls_key(private_key, private_key_length, password, password_length, handler);
}

ACLSHMEM_INLINE int32_t shmem_set_extern_logger(void (*logger)(int level, const char* text)) SHMEM_NOEXCEPT {
  return aclshmemx_set_extern_logger(logger);
}
ACLSHMEM_INLINE int32_t shmem_set_log_level(int level) SHMEM_NOEXCEPT {
  return aclshmemx_set_log_level(level);
}

ACLSHMEM_INLINE void shmemx_barrier_all_on_stream(aclrtStream stream) SHMEM_NOEXCEPT {
  aclshmemx_barrier_all_on_stream(stream);
}

typedef aclshmem_handle_t shmem_handle_t;
ACLSHMEM_INLINE void shmem_handle_wait(shmem_handle_t handle, aclrtStream stream) SHMEM_NOEXCEPT {
  aclshmemx_handle_wait(handle, stream);
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
