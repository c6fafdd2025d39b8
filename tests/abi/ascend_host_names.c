/* SPDX-License-Identifier: Apache-2.0 */
/* Each host call of Ascend SHMEM that moves data, signals, waits, synchronises or queries exists, with the same
 * parameters. Compiled only, as C11 and as C++, not called. */
#include <aclshmem.h>

/* One line for each call, in the order of that library's documentation. */
#define CALLS(expression) \
  do {                    \
    if (0) {              \
      (void)(expression); \
    }                     \
  } while (0)

static void* memory;
static int32_t* signal_word;
static size_t* places;
static int* yes;
static const int* status;
static aclrtStream stream;
static aclshmem_handle_t handle;

#define TYPED(NAME, T)                                                                                \
  static void typed_##NAME(T* array, uint8_t* sig) {                                                  \
    CALLS(aclshmem_##NAME##_put(array, array, (size_t)1, 0));                                         \
    CALLS(aclshmem_##NAME##_get(array, array, (size_t)1, 0));                                         \
    CALLS(aclshmem_##NAME##_put_nbi(array, array, (size_t)1, 0));                                     \
    CALLS(aclshmem_##NAME##_get_nbi(array, array, (size_t)1, 0));                                     \
    CALLS(aclshmem_##NAME##_iput(array, array, (ptrdiff_t)1, (ptrdiff_t)1, (size_t)1, 0));            \
    CALLS(aclshmem_##NAME##_iget(array, array, (ptrdiff_t)1, (ptrdiff_t)1, (size_t)1, 0));            \
    CALLS(aclshmem_##NAME##_p(array, array[0], 0));                                                   \
    CALLS(array[0] = aclshmem_##NAME##_g(array, 0));                                                  \
    CALLS(aclshmem_##NAME##_put_signal(array, array, (size_t)1, sig, 1, ACLSHMEM_SIGNAL_SET, 0));     \
    CALLS(aclshmem_##NAME##_put_signal_nbi(array, array, (size_t)1, sig, 1, ACLSHMEM_SIGNAL_ADD, 0)); \
  }
ACLSHMEM_HOST_TYPES(TYPED)

#define WAITS(NAME, T, TYPE)                                                                                    \
  static void waits_##NAME(T* array) {                                                                          \
    const T value = array[0];                                                                                   \
    CALLS(aclshmem_##NAME##_wait(array, value));                                                                \
    CALLS(aclshmem_##NAME##_wait_until(array, ACLSHMEM_CMP_EQ, value));                                         \
    CALLS(aclshmem_##NAME##_wait_until_all(array, (size_t)1, status, ACLSHMEM_CMP_NE, value));                  \
    CALLS(aclshmem_##NAME##_wait_until_any(array, (size_t)1, status, ACLSHMEM_CMP_GT, value, places));          \
    CALLS(aclshmem_##NAME##_wait_until_some(array, (size_t)1, places, status, ACLSHMEM_CMP_GE, value, places)); \
    CALLS(aclshmem_##NAME##_wait_until_all_vector(array, (size_t)1, status, ACLSHMEM_CMP_LT, array));           \
    CALLS(aclshmem_##NAME##_wait_until_any_vector(array, (size_t)1, status, ACLSHMEM_CMP_LE, array, places));   \
    CALLS(aclshmem_##NAME##_wait_until_some_vector(array, (size_t)1, places, status, 0, array, places));        \
    CALLS(aclshmem_##NAME##_test(array, ACLSHMEM_CMP_EQ, value, yes));                                          \
    CALLS(aclshmem_##NAME##_test_any(array, (size_t)1, status, 0, value, places));                              \
    CALLS(aclshmem_##NAME##_test_some(array, (size_t)1, places, status, 0, value, places));                     \
    CALLS(aclshmem_##NAME##_test_all_vector(array, (size_t)1, status, 0, array, yes));                          \
    CALLS(aclshmem_##NAME##_test_any_vector(array, (size_t)1, status, 0, array, places));                       \
    CALLS(aclshmem_##NAME##_test_some_vector(array, (size_t)1, places, status, 0, array, places));              \
  }
ACLSHMEM_WAIT_TYPES(WAITS)

#define SIZED(BITS, BYTES)                                                                   \
  static void sized_##BITS(void) {                                                           \
    CALLS(aclshmem_put##BITS(memory, memory, (uint32_t)1, 0));                               \
    CALLS(aclshmem_get##BITS(memory, memory, (uint32_t)1, 0));                               \
    CALLS(aclshmem_put##BITS##_nbi(memory, memory, (uint32_t)1, 0));                         \
    CALLS(aclshmem_get##BITS##_nbi(memory, memory, (uint32_t)1, 0));                         \
    CALLS(aclshmem_iput##BITS(memory, memory, (ptrdiff_t)1, (ptrdiff_t)1, (size_t)1, 0));    \
    CALLS(aclshmem_iget##BITS(memory, memory, (ptrdiff_t)1, (ptrdiff_t)1, (size_t)1, 0));    \
    CALLS(aclshmem_put##BITS##_signal(memory, memory, (size_t)1, signal_word, 1, 0, 0));     \
    CALLS(aclshmem_put##BITS##_signal_nbi(memory, memory, (size_t)1, signal_word, 1, 0, 0)); \
  }
SHMEM_SIZES(SIZED)

static void logger(int level, const char* text) {
  (void)level;
  (void)text;
}

static void others(void) {
  aclshmem_prof_pe_t* measured = NULL;
  int code = 0;
  uint64_t config = 0;
  CALLS(aclshmem_putmem(memory, memory, (size_t)1, 0));
  CALLS(aclshmem_getmem(memory, memory, (size_t)1, 0));
  CALLS(aclshmem_putmem_nbi(memory, memory, (size_t)1, 0));
  CALLS(aclshmem_getmem_nbi(memory, memory, (size_t)1, 0));
  CALLS(aclshmemx_putmem_on_stream(memory, memory, (size_t)1, 0, stream));
  CALLS(aclshmemx_getmem_on_stream(memory, memory, (size_t)1, 0, stream));
  CALLS(aclshmemx_quiet_on_stream(stream));
  CALLS(code = aclshmemx_set_mte_config((uint64_t)0, 1U, 0U));
  CALLS(code = aclshmemx_set_sdma_config((uint64_t)0, 1U, 0U));
  CALLS(code = aclshmemx_set_rdma_config((uint64_t)0, 1U, 0U));
  CALLS(code = aclshmemx_set_udma_config((uint64_t)0, 1U, 0U));
  CALLS(aclshmemx_putmem_signal(memory, memory, (size_t)1, memory, 1, 0, 0));
  CALLS(aclshmemx_putmem_signal_nbi(memory, memory, (size_t)1, memory, 1, 0, 0));
  CALLS(aclshmemx_signal_op_on_stream(signal_word, 1, 0, 0, stream));
  CALLS(aclshmemx_signal_wait_until_on_stream(signal_word, 0, 1, stream));
  CALLS(aclshmem_signal_wait_until(signal_word, 0, 1));
  CALLS(aclshmem_barrier(ACLSHMEM_TEAM_WORLD));
  CALLS(aclshmem_barrier_all());
  CALLS(aclshmemx_barrier_on_stream(ACLSHMEM_TEAM_WORLD, stream));
  CALLS(aclshmemx_barrier_all_on_stream(stream));
  CALLS(aclshmem_sync(ACLSHMEM_TEAM_WORLD));
  CALLS(aclshmem_sync_all());
  CALLS(aclshmemx_handle_wait(handle, stream));
  CALLS(config = util_get_ffts_config());
  CALLS(code = aclshmemx_set_extern_logger(logger));
  CALLS(code = aclshmemx_set_log_level(1));
  CALLS(aclshmemx_show_prof());
  CALLS(aclshmemx_get_prof(&measured, true));
  CALLS(code = aclshmemx_set_conf_store_tls(true, "", 0U));
  CALLS(code = aclshmemx_set_config_store_tls_key("", 0U, "", 0U, (aclshmem_decrypt_handler)NULL));
  (void)measured;
  (void)code;
  (void)config;
  (void)logger;
}

int main(void) {
  /* These have no effect, but keep the compiler from warning about unused functions. */
#define USE(NAME, T) (void)typed_##NAME;
  ACLSHMEM_HOST_TYPES(USE)
#define USE_WAITS(NAME, T, TYPE) (void)waits_##NAME;
  ACLSHMEM_WAIT_TYPES(USE_WAITS)
#define USE_SIZED(BITS, BYTES) (void)sized_##BITS;
  SHMEM_SIZES(USE_SIZED)
  others();
  return aclshmem_my_pe() == -1 ? 0 : 1;
}
