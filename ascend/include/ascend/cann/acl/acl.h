/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small stand-in for the header of this name of CANN, so that host programs written for Ascend processors compile and
 * run on libshmem: start, devices, streams, memory. Put this folder (ascend/cann) on the include
 * path only on machines without CANN. All calls are inline: there is nothing to link but libshmem.
 *
 * A stream is one of shmemx_stream_create, so that aclshmem's calls on streams keep their order with those here; NULL
 * is the stream that libshmem has while it runs (before and after that, work is done at once). Device memory is
 * memory, and every kind of copy is the same. A device is a number, 0 or more.
 *
 * Calls return ACL_SUCCESS or one of the codes below; aclGetRecentErrMsg then describes the error. Thread-safe.
 */
#ifndef SHMEM_ASCEND_ACL_H
#define SHMEM_ASCEND_ACL_H

/* NOLINTBEGIN(modernize-use-nullptr,cppcoreguidelines-owning-memory): these are C. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../../shmemx.h"
#include "../../../shmemx_interface.h"

#ifdef __cplusplus
#define ACL_INLINE inline
#else
#define ACL_INLINE static inline
#endif

typedef int aclError;
typedef void* aclrtStream;

enum {
  ACL_SUCCESS = 0,
  ACL_ERROR_NONE = 0,
  ACL_ERROR_INVALID_PARAM = 100000,
  ACL_ERROR_UNINITIALIZE = 100001,
  ACL_ERROR_REPEAT_INITIALIZE = 100002,
  ACL_ERROR_REPEAT_FINALIZE = 100037,
  ACL_ERROR_RT_PARAM_INVALID = 107000,
  ACL_ERROR_RT_INVALID_DEVICEID = 107001,
  ACL_ERROR_RT_CONTEXT_NULL = 107002,
  ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 107020,
  ACL_ERROR_BAD_ALLOC = 200000,
  ACL_ERROR_API_NOT_SUPPORT = 200001,
  ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
  ACL_ERROR_RT_RESOURCE_ALLOC_FAIL = 207003,
  ACL_ERROR_INTERNAL_ERROR = 500000,
  ACL_ERROR_FAILURE = 500001
};

typedef enum aclrtMemMallocPolicy {
  ACL_MEM_MALLOC_HUGE_FIRST,
  ACL_MEM_MALLOC_HUGE_ONLY,
  ACL_MEM_MALLOC_NORMAL_ONLY
} aclrtMemMallocPolicy;

typedef enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST,
  ACL_MEMCPY_HOST_TO_DEVICE,
  ACL_MEMCPY_DEVICE_TO_HOST,
  ACL_MEMCPY_DEVICE_TO_DEVICE,
  ACL_MEMCPY_DEFAULT
} aclrtMemcpyKind;

/* Internal, not for programs. shmemx_acl_fail keeps the text and returns `code`. */
#ifdef __cplusplus
extern "C" {
#endif
SHMEM_API int shmemx_acl_init(void) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_acl_finalize(void) SHMEM_NOEXCEPT;
SHMEM_API void shmemx_acl_set_device(int device) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_acl_device(void) SHMEM_NOEXCEPT;
SHMEM_API int shmemx_acl_fail(const char* call, const char* problem, int code) SHMEM_NOEXCEPT;
#ifdef __cplusplus
}
#endif

/* The message of this thread's last call that failed, NULL if none has. Valid until the next one fails. */
ACL_INLINE const char* aclGetRecentErrMsg(void) SHMEM_NOEXCEPT {
  const char* text = shmemx_error_text();
  return text[0] != '\0' ? text : NULL;
}

/* ---- Start and end, devices ---- */

/* `config` is ignored. Once in a process, and again after aclFinalize. */
ACL_INLINE aclError aclInit(const char* config) SHMEM_NOEXCEPT {
  (void)config;
  return shmemx_acl_init() == 0 ? ACL_SUCCESS
                                : shmemx_acl_fail("aclInit", "it has been called before", ACL_ERROR_REPEAT_INITIALIZE);
}
ACL_INLINE aclError aclFinalize(void) SHMEM_NOEXCEPT {
  return shmemx_acl_finalize() == 0
             ? ACL_SUCCESS
             : shmemx_acl_fail("aclFinalize", "there was no aclInit since the last one", ACL_ERROR_REPEAT_FINALIZE);
}
ACL_INLINE aclError aclrtSetDevice(int32_t device) SHMEM_NOEXCEPT {
  if (device < 0) {
    return shmemx_acl_fail("aclrtSetDevice", "no such device", ACL_ERROR_RT_INVALID_DEVICEID);
  }
  shmemx_acl_set_device(device);
  return ACL_SUCCESS;
}
ACL_INLINE aclError aclrtResetDevice(int32_t device) SHMEM_NOEXCEPT {
  if (device < 0) {
    return shmemx_acl_fail("aclrtResetDevice", "no such device", ACL_ERROR_RT_INVALID_DEVICEID);
  }
  if (device == shmemx_acl_device()) {
    shmemx_acl_set_device(-1);
  }
  return ACL_SUCCESS;
}
/* The calling thread's device. */
ACL_INLINE aclError aclrtGetDevice(int32_t* device) SHMEM_NOEXCEPT {
  if (device == NULL) {
    return shmemx_acl_fail("aclrtGetDevice", "device is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  if (shmemx_acl_device() < 0) {
    return shmemx_acl_fail("aclrtGetDevice", "this thread has set no device", ACL_ERROR_RT_CONTEXT_NULL);
  }
  *device = shmemx_acl_device();
  return ACL_SUCCESS;
}
/* 8, as on most hosts with Ascend processors: programs distribute their PEs by it. */
ACL_INLINE aclError aclrtGetDeviceCount(uint32_t* count) SHMEM_NOEXCEPT {
  if (count == NULL) {
    return shmemx_acl_fail("aclrtGetDeviceCount", "count is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  *count = 8;
  return ACL_SUCCESS;
}

/* Memory is reached by all: nothing is done. */
ACL_INLINE aclError aclrtDeviceEnablePeerAccess(int32_t device, uint32_t flags) SHMEM_NOEXCEPT {
  (void)flags;
  return device >= 0 ? ACL_SUCCESS
                     : shmemx_acl_fail("aclrtDeviceEnablePeerAccess", "no such device", ACL_ERROR_RT_INVALID_DEVICEID);
}
/* A name that programs search for a generation of processors. */
ACL_INLINE const char* aclrtGetSocName(void) SHMEM_NOEXCEPT {
  return "CPU";
}

/* ---- Streams ---- */

ACL_INLINE aclError aclrtCreateStream(aclrtStream* stream) SHMEM_NOEXCEPT {
  shmemx_stream_t* made = NULL;
  if (stream == NULL) {
    return shmemx_acl_fail("aclrtCreateStream", "stream is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  if (shmemx_stream_create(&made) != 0) {
    return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
  }
  *stream = made;
  return ACL_SUCCESS;
}
/* Waits for its work. */
ACL_INLINE aclError aclrtDestroyStream(aclrtStream stream) SHMEM_NOEXCEPT {
  if (stream == NULL) {
    return shmemx_acl_fail("aclrtDestroyStream", "stream is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  shmemx_stream_destroy((shmemx_stream_t*)stream);
  return ACL_SUCCESS;
}
ACL_INLINE int acli_is_idle(aclrtStream stream) SHMEM_NOEXCEPT { /* unless another thread gives it work */
  return stream == NULL && shmemx_init_status() != SHMEMX_STATUS_IS_INITIALIZED;
}
/* Waits for all work so far. Returns the first error of that work since the last such call. */
ACL_INLINE aclError aclrtSynchronizeStream(aclrtStream stream) SHMEM_NOEXCEPT {
  const int error = acli_is_idle(stream) ? 0 : shmemx_stream_synchronize((shmemx_stream_t*)stream);
  if (error == 0) {
    return ACL_SUCCESS;
  }
  return error == -ETIMEDOUT ? ACL_ERROR_RT_STREAM_SYNC_TIMEOUT : ACL_ERROR_INTERNAL_ERROR;
}

/* ---- Notifies: counts that streams and kernels raise, and streams wait for ---- */

typedef void* aclrtNotify;

/* `flag` is ignored. */
ACL_INLINE aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) SHMEM_NOEXCEPT {
  (void)flag;
  if (notify == NULL) {
    return shmemx_acl_fail("aclrtCreateNotify", "notify is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  *notify = calloc(1, sizeof(shmemx_notify_t));
  return *notify != NULL ? ACL_SUCCESS
                         : shmemx_acl_fail("aclrtCreateNotify", "out of memory", ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
}
/* No stream waits for it. */
ACL_INLINE aclError aclrtDestroyNotify(aclrtNotify notify) SHMEM_NOEXCEPT {
  if (notify == NULL) {
    return shmemx_acl_fail("aclrtDestroyNotify", "notify is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  free(notify);
  return ACL_SUCCESS;
}
ACL_INLINE aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) SHMEM_NOEXCEPT {
  if (notify == NULL) {
    return shmemx_acl_fail("aclrtRecordNotify", "notify is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  shmemx_notify_record_on_stream((shmemx_notify_t*)notify, (shmemx_stream_t*)stream);
  return ACL_SUCCESS;
}
/* Waits for one record and takes it, in the order of the stream; at most `timeout` milliseconds unless that is 0. */
ACL_INLINE aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) SHMEM_NOEXCEPT {
  if (notify == NULL) {
    return shmemx_acl_fail("aclrtWaitAndResetNotify", "notify is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  shmemx_notify_wait_on_stream((shmemx_notify_t*)notify, timeout, (shmemx_stream_t*)stream);
  return ACL_SUCCESS;
}

/* ---- Memory ---- */

/* `size` bytes above 0, at a multiple of 64; `policy` is ignored. */
ACL_INLINE aclError acli_allocate(const char* call, void** ptr, size_t size) SHMEM_NOEXCEPT {
  if (ptr == NULL || size == 0) {
    return shmemx_acl_fail(call, "ptr is NULL or size 0", ACL_ERROR_RT_PARAM_INVALID);
  }
  *ptr = size <= PTRDIFF_MAX - 63 ? aligned_alloc(64, (size + 63) / 64 * 64) : NULL;
  return *ptr != NULL ? ACL_SUCCESS : shmemx_acl_fail(call, "out of memory", ACL_ERROR_RT_MEMORY_ALLOCATION);
}
ACL_INLINE aclError acli_free(const char* call, void* ptr) SHMEM_NOEXCEPT {
  if (ptr == NULL) {
    return shmemx_acl_fail(call, "ptr is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  free(ptr);
  return ACL_SUCCESS;
}
ACL_INLINE aclError aclrtMalloc(void** ptr, size_t size, aclrtMemMallocPolicy policy) SHMEM_NOEXCEPT {
  (void)policy;
  return acli_allocate("aclrtMalloc", ptr, size);
}
ACL_INLINE aclError aclrtFree(void* ptr) SHMEM_NOEXCEPT {
  return acli_free("aclrtFree", ptr);
}
ACL_INLINE aclError aclrtMallocHost(void** ptr, size_t size) SHMEM_NOEXCEPT {
  return acli_allocate("aclrtMallocHost", ptr, size);
}
ACL_INLINE aclError aclrtFreeHost(void* ptr) SHMEM_NOEXCEPT {
  return acli_free("aclrtFreeHost", ptr);
}

ACL_INLINE aclError acli_check_area(const char* call, const void* dst, size_t room, const void* src,
                                    size_t count) SHMEM_NOEXCEPT {
  if (count != 0 && (dst == NULL || src == NULL)) {
    return shmemx_acl_fail(call, "an address is NULL", ACL_ERROR_RT_PARAM_INVALID);
  }
  return count <= room ? ACL_SUCCESS
                       : shmemx_acl_fail(call, "more bytes than the destination has", ACL_ERROR_RT_PARAM_INVALID);
}
/* Copies `count` bytes to a buffer of `room` bytes; the areas do not overlap. The calls without a stream begin after
 * the work of the stream NULL. */
ACL_INLINE aclError aclrtMemcpy(void* dst, size_t room, const void* src, size_t count,
                                aclrtMemcpyKind kind) SHMEM_NOEXCEPT {
  const aclError error = acli_check_area("aclrtMemcpy", dst, room, src, count);
  (void)kind;
  if (error != ACL_SUCCESS) {
    return error;
  }
  shmemx_await_default_stream();
  if (dst != NULL && src != NULL) {
    memcpy(dst, src, count);
  }
  return ACL_SUCCESS;
}
ACL_INLINE aclError aclrtMemcpyAsync(void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind,
                                     aclrtStream stream) SHMEM_NOEXCEPT {
  const aclError error = acli_check_area("aclrtMemcpyAsync", dst, room, src, count);
  if (error != ACL_SUCCESS) {
    return error;
  }
  if (acli_is_idle(stream)) {
    return aclrtMemcpy(dst, room, src, count, kind);
  }
  shmemx_memcpy_on_stream(dst, src, count, (shmemx_stream_t*)stream);
  return ACL_SUCCESS;
}
ACL_INLINE aclError aclrtMemset(void* dst, size_t room, int32_t value, size_t count) SHMEM_NOEXCEPT {
  const aclError error = acli_check_area("aclrtMemset", dst, room, dst, count);
  if (error != ACL_SUCCESS) {
    return error;
  }
  shmemx_await_default_stream();
  if (dst != NULL) {
    memset(dst, value, count);
  }
  return ACL_SUCCESS;
}
ACL_INLINE aclError aclrtMemsetAsync(void* dst, size_t room, int32_t value, size_t count,
                                     aclrtStream stream) SHMEM_NOEXCEPT {
  const aclError error = acli_check_area("aclrtMemsetAsync", dst, room, dst, count);
  if (error != ACL_SUCCESS) {
    return error;
  }
  if (acli_is_idle(stream)) {
    return aclrtMemset(dst, room, value, count);
  }
  shmemx_memset_on_stream(dst, value, count, (shmemx_stream_t*)stream);
  return ACL_SUCCESS;
}

typedef enum aclrtCmoType {
  ACL_RT_CMO_TYPE_PREFETCH,
  ACL_RT_CMO_TYPE_WRITEBACK,
  ACL_RT_CMO_TYPE_INVALID,
  ACL_RT_CMO_TYPE_FLUSH
} aclrtCmoType;
/* Caches are coherent: nothing is done. */
ACL_INLINE aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType type, aclrtStream stream) SHMEM_NOEXCEPT {
  (void)size;
  (void)type;
  (void)stream;
  return src != NULL ? ACL_SUCCESS : shmemx_acl_fail("aclrtCmoAsync", "src is NULL", ACL_ERROR_RT_PARAM_INVALID);
}

/* NOLINTEND(modernize-use-nullptr,cppcoreguidelines-owning-memory) */
#endif
