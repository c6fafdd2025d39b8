// SPDX-License-Identifier: Apache-2.0
// A host program written as for Ascend SHMEM: host FILE. The first PE writes the unique id to FILE; the rank of a
// PE comes from oshrun's variables, as it could from those of any launcher.
#include <shmem.h>  // the one in ascend/

#include <array>
#include <cstdio>
#include <cstring>

#include "tests/integration/shmem/ascend/share_uid.hpp"
#include "tests/support/pe.h"

namespace {

int logged = 0;

void count_messages(int level, const char* text) {
  logged += level == 3 && std::strstr(text, "shmem_query_thread: provided is NULL") != nullptr ? 1 : 0;
}

void messages() {
  CHECK(aclshmemx_set_log_level(5) == ACLSHMEM_INVALID_PARAM);
  CHECK(aclshmemx_set_extern_logger(count_messages) == ACLSHMEM_SUCCESS);
  shmem_query_thread(nullptr);
  CHECK(aclshmemx_set_log_level(4) == ACLSHMEM_SUCCESS);
  shmem_query_thread(nullptr);
  CHECK(aclshmemx_set_log_level(0) == ACLSHMEM_SUCCESS);
  aclshmemx_set_extern_logger(nullptr);
  CHECK(logged == 1);
}

void before_init() {
  int word = 0;
  CHECK(aclshmemx_init_status() == ACLSHMEM_STATUS_NOT_INITIALIZED);
  CHECK(aclshmem_malloc(64) == nullptr && aclshmem_ptr(&word, 0) == nullptr);
  CHECK(aclshmem_finalize() == ACLSHMEM_NOT_INITED && util_get_ffts_config() == 0);
  aclshmem_team_t team = 7;
  CHECK(aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 1, 1, &team) == ACLSHMEM_NOT_INITED);
  CHECK(aclshmem_my_pe() == -1 && aclshmem_team_n_pes(ACLSHMEM_TEAM_WORLD) == -1);
}

void wrong_attributes(aclshmemx_uniqueid_t& uid) {
  aclshmemx_init_attr_t attr;
  CHECK(aclshmemx_set_attr_uniqueid_args(2, 2, 1 << 20, &uid, &attr) == ACLSHMEM_INVALID_PARAM);
  CHECK(aclshmemx_set_attr_uniqueid_args(0, 1, 1 << 20, &uid, &attr) == ACLSHMEM_SUCCESS);
  auto wrong = attr;
  wrong.n_pes = ACLSHMEM_MAX_PES + 1;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &wrong) == ACLSHMEM_INVALID_VALUE);
  wrong = attr;
  wrong.local_mem_size = ACLSHMEM_MAX_LOCAL_SIZE + 1;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &wrong) == ACLSHMEM_INVALID_VALUE);
  wrong = attr;
  wrong.option_attr.control_operation_timeout = 0;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &wrong) == ACLSHMEM_INVALID_VALUE);
  wrong = attr;
  wrong.option_attr.data_op_engine_type = static_cast<data_op_engine_type_t>(0);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &wrong) == ACLSHMEM_INVALID_VALUE);
  wrong = attr;
  wrong.instance_id = 1;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &wrong) == ACLSHMEM_NOT_SUPPORTED);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, nullptr) == ACLSHMEM_INVALID_PARAM);
  CHECK(aclshmemx_set_conf_store_tls(false, nullptr, 0) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_set_conf_store_tls(true, "", 0) == ACLSHMEM_NOT_SUPPORTED);
}

void memory(int me, int pes) {
  auto* word = static_cast<int*>(aclshmemx_malloc(sizeof(int)));
  auto* zero = static_cast<char*>(aclshmem_calloc(10, 10));
  auto* line = aclshmemx_align(4096, 64, HOST_SIDE);
  CHECK(word != nullptr && zero != nullptr && zero[99] == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(line) % 4096 == 0 && aclshmem_malloc(0) == nullptr);
  CHECK(aclshmemx_get_heap_base() <= word && aclshmem_ptr(word, me) == word);
  CHECK(aclshmem_ptr(word, pes) == nullptr && aclshmem_ptr(word, -1) == nullptr);
  const int right = (me + 1) % pes;
  if (auto* theirs = static_cast<int*>(aclshmem_ptr(word, right)); theirs != nullptr) {
    *theirs = me;
  } else {
    aclshmem_putmem(word, &me, sizeof me, right);  // it is on another node
  }
  aclshmem_barrier_all();
  CHECK(*word == (me + pes - 1) % pes);
  aclshmemx_free(line, HOST_SIDE);
  aclshmem_free(zero);
  aclshmemx_free(word);
}

void teams(int me, int pes) {
  aclshmem_team_t even = 7;
  CHECK(aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, &even) == ACLSHMEM_SUCCESS);
  CHECK((even == ACLSHMEM_TEAM_INVALID) == (me % 2 != 0));
  CHECK(aclshmem_team_my_pe(even) == (me % 2 == 0 ? me / 2 : -1));
  aclshmem_barrier(even);
  aclshmem_sync(even);
  aclshmem_team_config_t config;
  static_assert(sizeof config == 64);
  CHECK(aclshmem_team_get_config(ACLSHMEM_TEAM_WORLD, &config) == ACLSHMEM_SUCCESS);
  CHECK(aclshmem_team_get_config(ACLSHMEM_TEAM_INVALID, &config) == ACLSHMEM_INVALID_PARAM);
  CHECK(aclshmem_team_get_config(ACLSHMEM_TEAM_WORLD, nullptr) == ACLSHMEM_INVALID_PARAM);
  CHECK(aclshmem_team_translate_pe(ACLSHMEM_TEAM_WORLD, 1, even) == -1);
  aclshmem_team_destroy(even);
  aclshmem_team_t x = 7;
  aclshmem_team_t y = 7;
  CHECK(aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, -1, 1, &x) == ACLSHMEM_INVALID_PARAM);
  CHECK(aclshmem_team_split_2d(ACLSHMEM_TEAM_WORLD, 2, &x, &y) == ACLSHMEM_SUCCESS);
  CHECK(aclshmem_team_my_pe(x) == me % 2 && aclshmem_team_my_pe(y) == me / 2);
  aclshmem_team_destroy(y);
  aclshmem_team_destroy(x);
}

void streams(int me, int pes) {
  constexpr int kWords = 1000;
  auto* words = static_cast<int*>(aclshmem_malloc(kWords * sizeof(int)));
  std::array<int, kWords> mine{};
  std::array<int, kWords> back{};
  shmemx_stream_t* made = nullptr;
  CHECK(shmemx_stream_create(&made) == 0 && shmemx_stream_create(nullptr) != 0);
  for (aclrtStream stream : {static_cast<aclrtStream>(nullptr), static_cast<aclrtStream>(made)}) {
    for (int round = 0; round < 20; ++round) {
      // Two puts of the same memory: the result is right only if they run in order.
      mine.fill(round * 1000 + me);
      aclshmemx_putmem_on_stream(words, mine.data(), sizeof mine, (me + 1) % pes, stream);
      aclshmemx_quiet_on_stream(stream);
      aclshmemx_barrier_all_on_stream(stream);
      aclshmemx_getmem_on_stream(back.data(), words, sizeof back, me, stream);
      aclshmemx_barrier_on_stream(ACLSHMEM_TEAM_WORLD, stream);
      CHECK(shmemx_stream_synchronize(static_cast<shmemx_stream_t*>(stream)) == 0);
      CHECK(back[kWords - 1] == round * 1000 + (me + pes - 1) % pes);
    }
  }
  aclshmemx_barrier_on_stream(ACLSHMEM_TEAM_INVALID, made);
  shmemx_stream_destroy(made);
  aclshmem_free(words);
}

struct KernelWork {
  std::int32_t* signal = nullptr;
  float* element = nullptr;
  std::uint64_t config = 0;
};

/// Written like a kernel of Ascend SHMEM, where the core is not an argument.
void kernel(shmemx_core_t* /*core*/, void* argument) {
  auto& work = *static_cast<KernelWork*>(argument);
  util_set_ffts_config(work.config);
  const int pes = aclshmem_n_pes();
  const int right = (aclshmem_my_pe() + 1) % pes;
  const float half = 0.5F;
  CHECK(aclshmem_team_pe_mapping(ACLSHMEM_TEAM_WORLD, right) == right);
  aclshmemx_signal_op(work.signal, 1, ACLSHMEM_SIGNAL_ADD, right);
  CHECK(aclshmem_signal_wait_until(work.signal, ACLSHMEM_CMP_GE, 2) == 2);  // two cores
  shmem_putmem(work.element, &half, sizeof half, right);
  aclshmem_fence();
  aclshmem_quiet();
  aclshmem_float_wait_until(work.element, ACLSHMEM_CMP_GT, 0.25F);
  CHECK(aclshmem_float_test(work.element, ACLSHMEM_CMP_EQ, 0.5F) == 1);
  aclshmem_barrier_all();
  aclshmem_barrier(ACLSHMEM_TEAM_WORLD);
  aclshmem_sync(ACLSHMEM_TEAM_WORLD);
  aclshmemx_barrier_vec(ACLSHMEM_TEAM_WORLD);
  aclshmemx_barrier_vec(ACLSHMEM_TEAM_INVALID);
  aclshmemx_barrier_all_vec();
  std::uint32_t list[] = {static_cast<std::uint32_t>(aclshmem_my_pe())};
  aclshmemx_partial_barrier(ACLSHMEM_TEAM_WORLD, list, 1);
  dcci_cacheline(reinterpret_cast<std::uint8_t*>(work.element));
  dcci_entire_cache();
  aclshmem_sync_all();
}

void kernels() {
  KernelWork work;
  work.signal = static_cast<std::int32_t*>(aclshmem_calloc(1, sizeof(std::int32_t)));
  work.element = static_cast<float*>(aclshmem_calloc(1, sizeof(float)));
  work.config = util_get_ffts_config();
  CHECK(shmemx_launch(2, kernel, &work) == 0);
  aclshmemx_handle_wait(aclshmem_handle_t{ACLSHMEM_TEAM_WORLD}, nullptr);
  aclshmemx_handle_wait(aclshmem_handle_t{ACLSHMEM_TEAM_INVALID}, nullptr);
  CHECK(shmemx_stream_synchronize(nullptr) == 0);
  aclshmem_free(work.element);
  aclshmem_free(work.signal);
}

}  // namespace

PE_PART(host) {
  if (argc != 2) {
    return 2;
  }
  const int rank = ascend::number("OSHRUN_RANK");
  const int size = ascend::number("OSHRUN_SIZE");
  messages();
  before_init();
  aclshmemx_uniqueid_t uid = ACLSHMEM_UNIQUEID_INITIALIZER;
  wrong_attributes(uid);
  CHECK(ascend::share(argv[1], rank, uid) == ACLSHMEM_SUCCESS);
  aclshmemx_init_attr_t attr;
  CHECK(aclshmemx_set_attr_uniqueid_args(rank, size, 16 << 20, &uid, &attr) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attr) == ACLSHMEM_SUCCESS);
  if (pe_failures() != 0) {
    return 1;
  }
  CHECK(aclshmemx_init_status() == ACLSHMEM_STATUS_IS_INITIALIZED);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attr) == ACLSHMEM_INNER_ERROR);
  CHECK(aclshmem_my_pe() == rank && aclshmem_n_pes() == size);
  CHECK(aclshmemx_instance_ctx_get() != nullptr && aclshmemx_instance_ctx_set(3) == ACLSHMEM_NOT_SUPPORTED);
  memory(rank, size);
  teams(rank, size);
  streams(rank, size);
  kernels();
  CHECK(aclshmem_finalize() == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_finalize(0) == ACLSHMEM_NOT_INITED);
  return pe_result();
}
