/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: starting and ending. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_INIT_H
#define SHMEM_ACLSHMEM_INIT_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include <stdio.h>

#include "aclshmem_types.h"

/* ---- Starting and ending ---- */

ACLSHMEM_INLINE int aclshmemx_init_status(void) SHMEM_NOEXCEPT {
  return shmemx_init_status();
}

/* One PE calls it and sends the bytes to the others (see shmemx_get_uniqueid). */
ACLSHMEM_INLINE int aclshmemx_get_uniqueid(aclshmemx_uniqueid_t* uid) SHMEM_NOEXCEPT {
  shmemx_uniqueid_t ours = SHMEMX_UNIQUEID_INITIALIZER;
  if (uid == NULL) {
    return ACLSHMEM_INVALID_PARAM;
  }
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
  memset((void*)attr, 0, sizeof *attr);
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
  if (attr->local_mem_size < 1 || attr->local_mem_size > ACLSHMEM_MAX_LOCAL_SIZE) {
    return ACLSHMEM_INVALID_VALUE;
  }
  if (attr->option_attr.shm_init_timeout == 0 || attr->option_attr.shm_create_timeout == 0 ||
      attr->option_attr.control_operation_timeout == 0) {
    return ACLSHMEM_INVALID_VALUE;
  }
  if (attr->option_attr.data_op_engine_type == 0 || ((int)attr->option_attr.data_op_engine_type & ~engines) != 0) {
    return ACLSHMEM_INVALID_VALUE;
  }
  return attr->instance_id == 0 ? ACLSHMEM_SUCCESS : ACLSHMEM_NOT_SUPPORTED;
}

/* Collective over the job. ACLSHMEM_INNER_ERROR if the library is running. */
ACLSHMEM_INLINE int aclshmemx_init_attr(aclshmemx_bootstrap_t flags, aclshmemx_init_attr_t* attr) SHMEM_NOEXCEPT {
  shmemx_init_attr_t ours = SHMEMX_INIT_ATTR_INITIALIZER;
  shmemx_uniqueid_t uid = SHMEMX_UNIQUEID_INITIALIZER;
  if (attr == NULL) {
    return ACLSHMEM_INVALID_PARAM;
  }
  const int wrong = aclshmemi_check_attr(attr);
  if (wrong != ACLSHMEM_SUCCESS) {
    return wrong;
  }
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
  if (!aclshmemi_ready()) {
    return ACLSHMEM_NOT_INITED;
  }
  shmem_finalize();
  for (int engine = SHMEMX_ENGINE_MTE; engine <= SHMEMX_ENGINE_UDMA; ++engine) {
    shmemx_engine(engine)->queues = 1;
  }
  return ACLSHMEM_SUCCESS;
}
ACLSHMEM_INLINE int aclshmemx_finalize(uint64_t instance_id) SHMEM_NOEXCEPT {
  return instance_id == 0 ? aclshmem_finalize() : ACLSHMEM_NOT_SUPPORTED;
}
/* Those of that library, whose programs compare them. Nothing is stored at NULL. */
ACLSHMEM_INLINE void aclshmem_info_get_version(int* major, int* minor) SHMEM_NOEXCEPT {
  if (major != NULL && minor != NULL) {
    *major = ACLSHMEM_MAJOR_VERSION;
    *minor = ACLSHMEM_MINOR_VERSION;
  }
}
/* `name` has room for ACLSHMEM_MAX_NAME_LEN characters. */
ACLSHMEM_INLINE void aclshmem_info_get_name(char* name) SHMEM_NOEXCEPT {
  if (name != NULL) {
    snprintf(name, ACLSHMEM_MAX_NAME_LEN, "ACLSHMEM v%d.%d.%d", ACLSHMEM_VENDOR_MAJOR_VER, ACLSHMEM_VENDOR_MINOR_VER,
             ACLSHMEM_VENDOR_PATCH_VER);
  }
}
ACLSHMEM_INLINE void aclshmem_global_exit(int status) SHMEM_NOEXCEPT {
  shmem_global_exit(status);
}

/* PEs connect without TLS: requests for it are refused, not ignored. */
ACLSHMEM_INLINE int32_t aclshmemx_set_conf_store_tls(bool enable, const char* tls_info,
                                                     uint32_t length) SHMEM_NOEXCEPT {
  (void)tls_info;
  (void)length;
  return enable ? aclshmemi_code(shmemx_not_supported("aclshmemx_set_conf_store_tls")) : ACLSHMEM_SUCCESS;
}
ACLSHMEM_INLINE int32_t aclshmemx_set_config_store_tls_key(const char* private_key, uint32_t private_key_length,
                                                           const char* password, uint32_t password_length,
                                                           aclshmem_decrypt_handler handler) SHMEM_NOEXCEPT {
  (void)private_key;
  (void)private_key_length;
  (void)password;
  (void)password_length;
  (void)handler;
  return aclshmemi_code(shmemx_not_supported("aclshmemx_set_config_store_tls_key"));
}

/* There is one instance, 0. */
ACLSHMEM_INLINE aclshmem_instance_ctx* aclshmemx_instance_ctx_get(void) SHMEM_NOEXCEPT {
  static aclshmem_instance_ctx context = {0, NULL};
  return aclshmemi_running() ? &context : NULL;
}
ACLSHMEM_INLINE int aclshmemx_instance_ctx_set(uint64_t id) SHMEM_NOEXCEPT {
  return id == 0 ? ACLSHMEM_SUCCESS : ACLSHMEM_NOT_SUPPORTED;
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
