// SPDX-License-Identifier: Apache-2.0
// A host program with a kernel, written as for Ascend SHMEM: allgather FILE. It uses only that library's headers
// and acl.h, except to launch the kernel, which Ascend does by compiler syntax.
#include <acl/acl.h>
#include <kernel_operator.h>
#include <shmem.h>  // the one in ascend/

#include <cstdio>
#include <vector>

#include "tests/integration/shmem/ascend/share_uid.hpp"
#include "tests/support/pe.h"

namespace {

struct Arguments {
  GM_ADDR input;
  GM_ADDR output;
  GM_ADDR symmetric;  // a line of 64 bytes for each core, then the data of this PE
  int elements;
  int magic;
};

/// Each core publishes its part of this PE's input, signals it, and fetches the same part from all other PEs.
template <typename T>
void allgather(shmemx_core_t* /*core*/, void* given) {
  const auto& arguments = *static_cast<Arguments*>(given);
  auto* input = reinterpret_cast<__gm__ T*>(arguments.input);
  auto* output = reinterpret_cast<__gm__ T*>(arguments.output);
  const int64_t cores = AscendC::GetBlockNum();
  const int64_t core = AscendC::GetBlockIdx();
  auto* signal = reinterpret_cast<__gm__ int32_t*>(arguments.symmetric + core * 64);
  auto* data = reinterpret_cast<__gm__ T*>(arguments.symmetric + cores * 64);
  const int64_t each = arguments.elements / cores;
  const int64_t first = core * each;
  const auto count = static_cast<uint32_t>(core == cores - 1 ? arguments.elements - first : each);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an offset in the core's own memory
  auto* scratch = reinterpret_cast<__ubuf__ T*>(uint64_t{1024});
  constexpr uint32_t kScratch = 1024;

  aclshmemx_mte_put_nbi(data + first, input + first, scratch, kScratch, count, aclshmem_my_pe(), EVENT_ID0);
  AscendC::SetFlag<AscendC::HardEvent::MTE3_S>(EVENT_ID0);
  AscendC::WaitFlag<AscendC::HardEvent::MTE3_S>(EVENT_ID0);
  for (int pe = 0; pe < aclshmem_n_pes(); ++pe) {
    aclshmemx_signal_op(signal + aclshmem_my_pe(), arguments.magic, ACLSHMEM_SIGNAL_SET, pe);
  }
  for (int pe = 0; pe < aclshmem_n_pes(); ++pe) {
    aclshmem_signal_wait_until(signal + pe, ACLSHMEM_CMP_GE, arguments.magic);
    shmem_mte_get_mem_nbi(output + pe * arguments.elements + first, data + first, scratch, kScratch, count, pe,
                          EVENT_ID1);
  }
  aclshmem_barrier_all();  // no PE changes its data while others fetch it
}

template <typename T>
T element(int pe, int i, int round) {
  const int number = pe * 31 + i + round;
  return static_cast<T>(number);
}

template <typename T>
void run(int rank, int size, aclrtStream stream) {
  constexpr int kRounds = 5;
  constexpr int kElements = 5003;
  constexpr int kCores = 3;
  constexpr size_t kBytes = kElements * sizeof(T);
  const size_t all = kBytes * static_cast<size_t>(size);
  void* input = nullptr;
  void* output = nullptr;
  T* input_host = nullptr;
  T* output_host = nullptr;
  CHECK(aclrtMalloc(&input, kBytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  CHECK(aclrtMalloc(&output, all, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  CHECK(aclrtMallocHost(reinterpret_cast<void**>(&input_host), kBytes) == ACL_SUCCESS);
  CHECK(aclrtMallocHost(reinterpret_cast<void**>(&output_host), all) == ACL_SUCCESS);
  auto* symmetric = static_cast<uint8_t*>(aclshmem_calloc(1, size_t{kCores} * 64 + kBytes));
  std::vector<Arguments> launches;
  for (int round = 1; round <= kRounds; ++round) {
    launches.push_back({static_cast<GM_ADDR>(input), static_cast<GM_ADDR>(output), symmetric, kElements, round});
  }
  // All rounds are queued at once, each with copies before and after its kernel.
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kElements; ++i) {
      input_host[i] = element<T>(rank, i, round);
    }
    CHECK(aclrtMemcpyAsync(input, kBytes, input_host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream) == ACL_SUCCESS);
    CHECK(aclrtMemsetAsync(output, all, 0, all, stream) == ACL_SUCCESS);
    shmemx_launch_on_stream(kCores, allgather<T>, &launches[static_cast<size_t>(round)],
                            static_cast<shmemx_stream_t*>(stream));
    CHECK(aclrtMemcpyAsync(output_host, all, output, all, ACL_MEMCPY_DEVICE_TO_HOST, stream) == ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    int different = 0;
    for (int pe = 0; pe < size; ++pe) {
      for (int i = 0; i < kElements; ++i) {
        different += output_host[pe * kElements + i] == element<T>(pe, i, round) ? 0 : 1;
      }
    }
    CHECK(different == 0);
  }
  aclshmem_free(symmetric);
  CHECK(aclrtFreeHost(output_host) == ACL_SUCCESS && aclrtFreeHost(input_host) == ACL_SUCCESS);
  CHECK(aclrtFree(output) == ACL_SUCCESS && aclrtFree(input) == ACL_SUCCESS);
}

/// The same by host calls: each PE puts its data to all, with a signal.
void by_host(int rank, int size) {
  constexpr size_t kElements = 1000;
  const auto pes = static_cast<size_t>(size);
  auto* gathered = static_cast<float*>(aclshmem_malloc(kElements * pes * sizeof(float)));
  auto* arrived = static_cast<int32_t*>(aclshmem_calloc(1, sizeof(int32_t)));
  std::vector<float> mine(kElements, static_cast<float>(rank) + 0.5F);
  for (int pe = 0; pe < size; ++pe) {
    shmem_put_float_mem_signal(gathered + kElements * static_cast<size_t>(rank), mine.data(), kElements, arrived, 1,
                               ACLSHMEM_SIGNAL_ADD, pe);
  }
  aclshmem_signal_wait_until(arrived, ACLSHMEM_CMP_EQ, size);
  for (size_t i = 0; i < kElements * pes; ++i) {
    const size_t pe = i / kElements;
    CHECK(gathered[i] == static_cast<float>(pe) + 0.5F);
  }
  aclshmem_barrier_all();
  aclshmem_free(arrived);
  aclshmem_free(gathered);
}

void mistakes() {
  void* memory = nullptr;
  char bytes[4] = {};
  int32_t device = -1;
  uint32_t count = 0;
  CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL && aclrtSetDevice(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtGetDeviceCount(&count) == ACL_SUCCESS && count > 0);
  CHECK(aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_NORMAL_ONLY) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMalloc(&memory, SIZE_MAX / 2, ACL_MEM_MALLOC_NORMAL_ONLY) == ACL_ERROR_RT_MEMORY_ALLOCATION);
  CHECK(aclrtFree(nullptr) == ACL_ERROR_RT_PARAM_INVALID && aclrtCreateStream(nullptr) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemcpy(bytes, 3, bytes, 4, ACL_MEMCPY_DEFAULT) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(std::string(aclGetRecentErrMsg()).find("aclrtMemcpy") != std::string::npos);
  CHECK(aclrtMemset(nullptr, 4, 0, 4) == ACL_ERROR_RT_PARAM_INVALID);
  // While libshmem does not run, its stream is empty.
  CHECK(aclrtMemsetAsync(bytes, 4, 7, 4, nullptr) == ACL_SUCCESS && bytes[3] == 7);
  CHECK(aclrtSynchronizeStream(nullptr) == ACL_SUCCESS);
}

}  // namespace

PE_PART(allgather) {
  if (argc != 2) {
    return 2;
  }
  const int rank = ascend::number("OSHRUN_RANK");
  const int size = ascend::number("OSHRUN_SIZE");
  CHECK(aclFinalize() == ACL_ERROR_REPEAT_FINALIZE && aclInit(nullptr) == ACL_SUCCESS);
  CHECK(aclInit(nullptr) == ACL_ERROR_REPEAT_INITIALIZE);
  mistakes();
  int32_t device = -1;
  CHECK(aclrtSetDevice(rank % 8) == ACL_SUCCESS && aclrtGetDevice(&device) == ACL_SUCCESS && device == rank % 8);
  aclshmemx_uniqueid_t uid = ACLSHMEM_UNIQUEID_INITIALIZER;
  CHECK(ascend::share(argv[1], rank, uid) == ACLSHMEM_SUCCESS);
  // Filled as in Ascend's examples, which do not set all members.
  aclshmemx_init_attr_t attributes;
  attributes.my_pe = rank;
  attributes.n_pes = size;
  attributes.ip_port[0] = '\0';
  attributes.local_mem_size = 16UL * 1024 * 1024;
  attributes.option_attr = {(1 << 16) + static_cast<int>(sizeof attributes),
                            ACLSHMEM_DATA_OP_MTE,
                            DEFAULT_TIMEOUT,
                            DEFAULT_TIMEOUT,
                            DEFAULT_TIMEOUT,
                            -1};
  attributes.comm_args = &uid;
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) == ACLSHMEM_SUCCESS);
  if (pe_failures() != 0) {
    return 1;
  }
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
  run<int32_t>(rank, size, stream);
  run<float>(rank, size, stream);
  run<int64_t>(rank, size, nullptr);
  by_host(rank, size);
  // In this order, as some of Ascend's examples do.
  const int status = shmem_finalize();
  CHECK(status == ACLSHMEM_SUCCESS);
  CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS && aclrtDestroyStream(stream) == ACL_SUCCESS);
  CHECK(aclrtResetDevice(rank % 8) == ACL_SUCCESS && aclFinalize() == ACL_SUCCESS);
  return pe_result();
}
