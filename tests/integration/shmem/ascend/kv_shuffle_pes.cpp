// SPDX-License-Identifier: Apache-2.0
// kv_shuffle as a program for Ascend SHMEM calls it: kv_shuffle FILE BLOCK_DIMS HEADS PAGE DIM [MISTAKE]. Compares
// every byte of the caches with the result of a loop over all PEs; with a mistake, with the caches' initial contents.
// KV_PATH: one of SHMEMX_KV_PATH_*, by number.
#include <acl/acl.h>
#include <kv_shuffle_kernel.h>
#include <shmem.h>  // the one in ascend/

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/integration/shmem/ascend/share_uid.hpp"
#include "tests/support/pe.h"

namespace {

using Cache = std::vector<uint8_t>;
using Numbers = std::vector<int64_t>;

constexpr int64_t max_block_nums = 12;
int wrong = 0;

void check(bool good, const char* what) {
  if (!good) {
    ++wrong;
    std::fprintf(stderr, "PE %d: %s\n", aclshmem_my_pe(), what);
  }
}

/// The initial contents of a PE's cache.
Cache content(int pe, int which, int64_t size) {
  Cache bytes(static_cast<size_t>(size));
  uint32_t state = static_cast<uint32_t>(pe) * 2 + static_cast<uint32_t>(which) + 1;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<uint8_t>(state >> 24U);
  }
  return bytes;
}

/// PEs 2 n and 2 n + 1 are a pair, either of which sends; a last single PE is paired with itself.
struct Tables {
  Numbers pairs{};
  std::vector<Numbers> source{}, destination{};
};

Tables tables_of(int pes) {
  Tables all;
  for (int pe = 0; pe < pes; ++pe) {
    const int partner = (pe ^ 1) < pes ? pe ^ 1 : pe;
    const bool sends = partner != pe && (pe % 4 == 0 || pe % 4 == 3);
    all.pairs.insert(all.pairs.end(), {partner, sends ? 0 : 1});
    all.source.push_back(sends ? Numbers{0, 1, 2, 7, 4} : Numbers{});
    all.destination.push_back(sends ? Numbers{8, 9, 10, 3, 5} : Numbers{});
  }
  return all;
}

Cache expected(const Tables& tables, int me, int which, int64_t block_size) {
  Cache mine = content(me, which, max_block_nums * block_size);
  for (size_t pe = 0; pe < tables.source.size(); ++pe) {
    if (tables.pairs[2 * pe] != me || tables.pairs[2 * pe + 1] != 0) {
      continue;
    }
    const Cache theirs = content(static_cast<int>(pe), which, max_block_nums * block_size);
    for (size_t i = 0; i < tables.source[pe].size(); ++i) {
      std::memcpy(&mine[static_cast<size_t>(tables.destination[pe][i] * block_size)],
                  &theirs[static_cast<size_t>(tables.source[pe][i] * block_size)], static_cast<size_t>(block_size));
    }
  }
  return mine;
}

/// Numbers in memory of the device.
class DeviceTable {
 public:
  explicit DeviceTable(const Numbers& numbers) : bytes_(numbers.size() * sizeof(int64_t)) {
    if (bytes_ != 0) {
      check(aclrtMalloc(&memory_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS, "aclrtMalloc");
      aclrtMemcpy(memory_, bytes_, numbers.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE);
    }
  }
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;
  ~DeviceTable() {
    if (memory_ != nullptr) {
      aclrtFree(memory_);
    }
  }
  [[nodiscard]] uint8_t* get() const { return static_cast<uint8_t*>(memory_); }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  size_t bytes_;
};

struct Job {
  int me, pes;
  uint32_t block_dims;
  int64_t heads, page, dim;
  int path;
  [[nodiscard]] int64_t block_size() const { return heads * page * dim; }
  [[nodiscard]] int64_t cache_size() const { return max_block_nums * block_size(); }
};

struct Caches {
  uint8_t* k;
  uint8_t* v;

  void fill(const Job& job) const {
    for (int which = 0; which < 2; ++which) {
      const Cache bytes = content(job.me, which, job.cache_size());
      aclrtMemcpy(which == 0 ? k : v, bytes.size(), bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE);
    }
    aclshmem_barrier_all();
  }
  void compare(const Job& job, const Tables& tables, const char* what) const {
    aclshmem_barrier_all();
    for (int which = 0; which < 2; ++which) {
      const Cache right = expected(tables, job.me, which, job.block_size());
      check(std::memcmp(which == 0 ? k : v, right.data(), right.size()) == 0, what);
    }
    aclshmem_barrier_all();
  }
};

/// Like Ascend's example: the operator outlives its stream.
void shuffle_ten_times(const Job& job, const Caches& caches) {
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  const Tables tables = tables_of(job.pes);
  const auto me = static_cast<size_t>(job.me);
  const DeviceTable pairs(tables.pairs);
  const DeviceTable source(tables.source[me]);
  const DeviceTable destination(tables.destination[me]);
  const auto count = static_cast<int64_t>(tables.source[me].size());

  KVShuffleOps ops(job.block_dims, stream, job.path);
  for (int i = 0; i < 10; ++i) {
    ops.compute(caches.k, caches.v, pairs.get(), source.get(), destination.get(), count, job.heads, job.page, job.dim);
  }
  check(aclrtSynchronizeStream(stream) == ACL_SUCCESS, "the stream has an error");
  caches.compare(job, tables, "the caches are wrong");

  // The stream reads the tables in its order, and the host does not wait for it: see the destructor.
  caches.fill(job);
  const Numbers nothing(tables.pairs.size(), -1);
  for (int i = 0; i < 3; ++i) {
    aclrtMemcpyAsync(pairs.get(), pairs.bytes(), tables.pairs.data(), pairs.bytes(), ACL_MEMCPY_HOST_TO_DEVICE, stream);
    ops.compute(caches.k, caches.v, pairs.get(), source.get(), destination.get(), count, job.heads, job.page, job.dim);
    aclrtMemcpyAsync(pairs.get(), pairs.bytes(), nothing.data(), pairs.bytes(), ACL_MEMCPY_HOST_TO_DEVICE, stream);
  }
  aclrtDestroyStream(stream);
  caches.compare(job, tables, "the caches are wrong with tables that the stream reads");
}

/// PE 0 would send to PE 1, without the mistake.
void make_mistake(const Job& job, const Caches& caches, const std::string& mistake) {
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  const bool sends = job.me == 0;
  const DeviceTable pairs(mistake == "two-senders" ? Numbers{1, 0, 0, 0} : Numbers{1, 0, 0, 1});
  const DeviceTable source({0, 1});
  const DeviceTable destination(mistake == "block" ? Numbers{8, max_block_nums} : Numbers{8, 9});
  std::vector<uint8_t> elsewhere(static_cast<size_t>(job.cache_size()));
  {
    KVShuffleOps ops(mistake == "cores" ? 0 : job.block_dims, stream, mistake == "path" ? 3 : job.path);
    ops.compute(mistake == "memory" && !sends ? elsewhere.data() : caches.k, caches.v,
                mistake == "no-pairs" ? nullptr : pairs.get(), mistake == "no-table" ? nullptr : source.get(),
                destination.get(), mistake == "count" ? -1 : 2, job.heads, job.page, mistake == "shape" ? 0 : job.dim);
    const auto error = aclrtSynchronizeStream(stream);
    std::printf("PE %d: %s\n", job.me, error != ACL_SUCCESS ? "an error" : "no error");
  }
  Tables none = tables_of(job.pes);
  none.source.clear();
  caches.compare(job, none, "a cache was touched");
  aclrtDestroyStream(stream);
}

}  // namespace

PE_PART(kv_shuffle) {
  if (argc < 6) {
    return 2;
  }
  const int rank = ascend::number("OSHRUN_RANK");
  const int size = ascend::number("OSHRUN_SIZE");
  aclshmemx_uniqueid_t uid{};
  aclshmemx_init_attr_t attributes{};
  aclInit(nullptr);
  aclrtSetDevice(rank);
  if (ascend::share(argv[1], rank, uid) != 0 ||
      aclshmemx_set_attr_uniqueid_args(rank, size, 64 << 20, &uid, &attributes) != 0 ||
      aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) {
    return 1;
  }
  const Job job{aclshmem_my_pe(),         aclshmem_n_pes(),   static_cast<uint32_t>(std::atoi(argv[2])),
                std::atoi(argv[3]),       std::atoi(argv[4]), std::atoi(argv[5]),
                ascend::number("KV_PATH")};
  const auto bytes = static_cast<size_t>(job.cache_size());
  // K and V each in its own allocation; then both orders in one allocation with room after them.
  auto* k = static_cast<uint8_t*>(aclshmem_malloc(bytes));
  auto* v = static_cast<uint8_t*>(aclshmem_malloc(bytes));
  auto* both = static_cast<uint8_t*>(aclshmem_malloc(3 * bytes));
  for (const Caches& caches : {Caches{k, v}, Caches{both, both + bytes}, Caches{both + bytes, both}}) {
    caches.fill(job);
    if (argc > 6) {
      make_mistake(job, caches, argv[6]);
    } else {
      shuffle_ten_times(job, caches);
    }
  }
  aclshmem_free(k);
  aclshmem_free(v);
  aclshmem_free(both);
  aclshmem_finalize();
  aclrtResetDevice(rank);
  aclFinalize();
  return wrong == 0 ? 0 : 1;
}
