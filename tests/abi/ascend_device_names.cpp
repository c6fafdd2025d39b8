// SPDX-License-Identifier: Apache-2.0
// The names by which kernels of Ascend SHMEM synchronise exist, with their types.
#include <internal/device/sync/shmemi_device_barrier.h>
#include <shmem.h>  // the one in ascend/
#include <shmem_api.h>

#include <type_traits>

namespace {

template <typename Function>
constexpr bool is(Function* /*name*/) {
  return true;
}

static_assert(is<void(uint64_t) noexcept>(util_set_ffts_config) && is<uint64_t() noexcept>(util_get_ffts_config));

static_assert(is<void(aclshmem_team_t) noexcept>(aclshmem_barrier) && is<void() noexcept>(aclshmem_barrier_all));
static_assert(is<void(aclshmem_team_t) noexcept>(aclshmem_sync) && is<void() noexcept>(aclshmem_sync_all));
static_assert(is<void(aclshmem_team_t) noexcept>(aclshmemx_barrier_vec));
static_assert(is<void() noexcept>(aclshmemx_barrier_all_vec));
static_assert(is<void(aclshmem_team_t, uint32_t*, uint32_t) noexcept>(aclshmemx_partial_barrier));
static_assert(is<void(aclshmem_team_t, uint32_t*, uint32_t) noexcept>(aclshmemx_partial_barrier_vec));
static_assert(is<void() noexcept>(aclshmem_quiet) && is<void() noexcept>(aclshmem_fence));
static_assert(is<void(int32_t*, int32_t, int, int) noexcept>(aclshmemx_signal_op));
static_assert(is<int32_t(int32_t*, int, int32_t) noexcept>(aclshmem_signal_wait_until));
static_assert(is<void(aclshmem_handle_t, aclrtStream) noexcept>(aclshmemx_handle_wait));

static_assert(is<int() noexcept>(aclshmem_my_pe) && is<int() noexcept>(aclshmem_n_pes));
static_assert(is<int(aclshmem_team_t) noexcept>(aclshmem_team_my_pe));
static_assert(is<int(aclshmem_team_t) noexcept>(aclshmem_team_n_pes));
static_assert(is<int(aclshmem_team_t, int, aclshmem_team_t) noexcept>(aclshmem_team_translate_pe));
static_assert(is<int(aclshmem_team_t, int) noexcept>(aclshmem_team_pe_mapping));
static_assert(is<void*(void*, int) noexcept>(aclshmem_ptr));

static_assert(is<void(uint8_t*) noexcept>(dcci_cacheline) && is<void(uint8_t*, uint64_t) noexcept>(dcci_cachelines));
static_assert(is<void() noexcept>(dcci_entire_cache) && is<void() noexcept>(dsb_all));

// The deprecated names.
static_assert(is<void(uint64_t) noexcept>(shmemx_set_ffts_config) && is<uint64_t() noexcept>(shmemx_get_ffts_config));
static_assert(is<void(shmem_team_t) noexcept>(shmem_barrier) && is<void()>(shmem_barrier_all));
static_assert(is<void(shmem_team_t) noexcept>(shmemx_barrier_vec) && is<void() noexcept>(shmemx_barrier_all_vec));
static_assert(is<int(shmem_team_t, const uint32_t*, uint32_t) noexcept>(shmemx_partial_barrier));
static_assert(is<int(shmem_team_t, const uint32_t*, uint32_t) noexcept>(shmemx_partial_barrier_vec));
static_assert(is<void()>(shmem_quiet) && is<void()>(shmem_fence));
static_assert(is<void(int32_t*, int32_t, int, int) noexcept>(shmemx_signal_op));
static_assert(is<int32_t(int32_t*, int, int32_t) noexcept>(shmem_signal_wait_until));
static_assert(is<void(shmem_handle_t, aclrtStream) noexcept>(shmem_handle_wait));

// Names from inside the device code.
static_assert(is<void(shmemi_team_t*) noexcept>(shmemi_barrier_npu_v1));
static_assert(is<void(shmemi_team_t*) noexcept>(shmemi_barrier_npu_v2));
static_assert(is<void(shmemi_team_t*) noexcept>(shmemi_barrier_npu_v3));
static_assert(is<void(int32_t*, int32_t) noexcept>(shmemi_signal_set));
static_assert(is<void(int32_t*, int, int32_t) noexcept>(shmemi_signal_set));
static_assert(is<int32_t(int32_t*, int32_t) noexcept>(shmemi_signal_wait_until_eq_for_barrier));
static_assert(is<void*(const void*, int) noexcept>(shmemi_ptr));
static_assert(is<shmemi_device_host_state_t*() noexcept>(shmemi_get_state));
static_assert(SHMEM_MAX_TEAMS == ACLSHMEM_MAX_TEAMS && SHMEM_BARRIER_TG_DISSEM_KVAL == 8);

// NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses
#define FAMILY(NAME, T)                                                                                               \
  static_assert(is<void(T*, T) noexcept>(aclshmem_##NAME##_wait));                                                    \
  static_assert(is<void(T*, int, T) noexcept>(aclshmem_##NAME##_wait_until));                                         \
  static_assert(is<void(T*, size_t, const int*, int, T) noexcept>(aclshmem_##NAME##_wait_until_all));                 \
  static_assert(is<size_t(T*, size_t, const int*, int, T) noexcept>(aclshmem_##NAME##_wait_until_any));               \
  static_assert(is<size_t(T*, size_t, size_t*, const int*, int, T) noexcept>(aclshmem_##NAME##_wait_until_some));     \
  static_assert(is<void(T*, size_t, const int*, int, const T*) noexcept>(aclshmem_##NAME##_wait_until_all_vector));   \
  static_assert(is<size_t(T*, size_t, const int*, int, const T*) noexcept>(aclshmem_##NAME##_wait_until_any_vector)); \
  static_assert(                                                                                                      \
      is<size_t(T*, size_t, size_t*, const int*, int, const T*) noexcept>(aclshmem_##NAME##_wait_until_some_vector)); \
  static_assert(is<int(T*, int, T) noexcept>(aclshmem_##NAME##_test));                                                \
  static_assert(is<int(T*, size_t, const int*, int, T) noexcept>(aclshmem_##NAME##_test_all));                        \
  static_assert(is<size_t(T*, size_t, const int*, int, T) noexcept>(aclshmem_##NAME##_test_any));                     \
  static_assert(is<size_t(T*, size_t, size_t*, const int*, int, T) noexcept>(aclshmem_##NAME##_test_some));           \
  static_assert(is<int(T*, size_t, const int*, int, const T*) noexcept>(aclshmem_##NAME##_test_all_vector));          \
  static_assert(is<size_t(T*, size_t, const int*, int, const T*) noexcept>(aclshmem_##NAME##_test_any_vector));       \
  static_assert(is<size_t(T*, size_t, size_t*, const int*, int, const T*) noexcept>(aclshmem_##NAME##_test_some_vector))
// NOLINTEND(bugprone-macro-parentheses)
FAMILY(float, float);
FAMILY(int8, int8_t);
FAMILY(int16, int16_t);
FAMILY(int32, int32_t);
FAMILY(int64, int64_t);
FAMILY(uint8, uint8_t);
FAMILY(uint16, uint16_t);
FAMILY(uint32, uint32_t);
FAMILY(uint64, uint64_t);
FAMILY(char, char);

}  // namespace

int main() {
  return aclshmem_my_pe() == -1 ? 0 : 1;
}
