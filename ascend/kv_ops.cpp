// SPDX-License-Identifier: Apache-2.0
// kv_shuffle as in Ascend SHMEM's example: tables in stream order, and caches without a stated length.
#include <fmt/format.h>

#include "kv_shuffle_ops.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "shmem/api/kernel_core.hpp"
#include "shmem/api/stream.hpp"
#include "shmem/config/log.hpp"

using shmem::Runtime;
namespace api = shmem::api;

namespace {

/// The number of unfinished calls in a stream. Incremented by one thread, decremented by the stream's.
class Unfinished {
 public:
  void begin() {
    const std::scoped_lock lock(mutex_);
    ++count_;
  }
  void end() {
    // Under the lock: a waiter may end this object as soon as the lock is free.
    const std::scoped_lock lock(mutex_);
    --count_;
    none_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};

}  // namespace

/// Owned by the application, between create and destroy.
struct shmemx_kv_ops {
  shmemx_kv_op_t* op = nullptr;
  std::errc error{};  // why there is no operator
  shmemx_stream_t* stream = nullptr;
  Unfinished unfinished{};
};

namespace {

constexpr const char* kCompute = "KVShuffleOps::compute";

/// One call of compute.
struct Call {
  std::byte* k;
  std::byte* v;
  const std::int64_t* table;
  const std::int64_t* source;
  const std::int64_t* destination;
  std::int64_t count;
  std::int64_t heads, page, head_dim;
};

std::errc refuse(const std::string& problem) {
  const std::errc error = std::errc::invalid_argument;
  api::report_loudly(api::invalid(*Runtime::current(), kCompute, problem));
  return error;
}

/// Bytes of the heap from `begin` to the end of its allocation, or to `other` if that comes first; 0: not in the heap.
std::size_t room(const Runtime& runtime, const std::byte* begin, const std::byte* other) {
  if (!runtime.job().is_in_heap(begin)) {
    return 0;
  }
  const std::byte* heap = runtime.job().memory.heap(runtime.job().me);
  const auto block = Runtime::current()->heap().block_around(static_cast<std::size_t>(begin - heap));
  if (!block || block->free() || begin >= heap + block->offset + block->requested) {
    return 0;
  }
  const std::byte* end = heap + block->offset + block->requested;
  return static_cast<std::size_t>((other > begin && other < end ? other : end) - begin);
}

/// The number of blocks of K and V; 0 with a message if the caches are invalid.
std::int64_t blocks_of(const Runtime& runtime, const Call& call) {
  const std::size_t in_k = room(runtime, call.k, call.v);
  const std::size_t in_v = room(runtime, call.v, call.k);
  if (in_k == 0 || in_v == 0) {
    refuse(fmt::format("{} is not in memory of shmem_malloc", in_k == 0 ? "k_cache" : "v_cache"));
    return 0;
  }
  std::int64_t bytes = 0;
  if (call.heads < 1 || call.page < 1 || call.head_dim < 1 || __builtin_mul_overflow(call.heads, call.page, &bytes) ||
      __builtin_mul_overflow(bytes, call.head_dim, &bytes)) {
    refuse(fmt::format("there are no blocks of kv_head_num {}, page_size {} and head_dim {}", call.heads, call.page,
                       call.head_dim));
    return 0;
  }
  const std::int64_t blocks = static_cast<std::int64_t>(std::min(in_k, in_v)) / bytes;
  if (blocks == 0) {
    refuse(fmt::format("a block has {} bytes, but k_cache has room for {}, and v_cache for {}", bytes, in_k, in_v));
  }
  return blocks;
}

/// Replaces missing tables: its plan is invalid, so that the partner gets an error too.
constexpr std::int64_t kNoBlock = -1;

std::errc carry_out(shmemx_kv_op_t& op, const Call& call) {
  const Runtime& runtime = *Runtime::current();
  if (call.table == nullptr) {
    return refuse("global_shuffle_table is NULL");
  }
  const bool sends = call.table[2 * static_cast<std::size_t>(runtime.my_pe()) + 1] == 0;
  const bool no_tables = call.count > 0 && (call.source == nullptr || call.destination == nullptr);
  std::errc problem{};
  if (sends && (no_tables || call.count < 0)) {
    problem =
        refuse((no_tables ? std::string("a block table is NULL") : "block_nums is " + std::to_string(call.count)) +
               "; the partner is told of a block -1 in its place");
  }
  const bool bad = problem != std::errc{};
  const std::int64_t blocks = blocks_of(runtime, call);
  shmemx_kv_plan_t* made = nullptr;
  const int refused =
      shmemx_kv_plan_create_pairs(runtime.n_pes(), runtime.my_pe(), call.table, bad ? &kNoBlock : call.source,
                                  bad ? &kNoBlock : call.destination, !sends ? 0 : (bad ? 1 : call.count), &made);
  if (refused != 0) {
    return std::errc{-refused};
  }
  const std::unique_ptr<shmemx_kv_plan_t, decltype(&shmemx_kv_plan_destroy)> plan(made, &shmemx_kv_plan_destroy);
  const shmemx_kv_cache_t cache{call.k, call.v, SHMEMX_KV_APART, 1, 1, blocks, call.heads, call.page, call.head_dim};
  return std::errc{-shmemx_kv_shuffle(&op, plan.get(), &cache)};
}

}  // namespace

extern "C" shmemx_kv_ops_t* shmemx_kv_ops_create(uint32_t block_dims, shmemx_stream_t* stream) noexcept try {
  return shmemx_kv_ops_create_by_path(block_dims, stream, SHMEMX_KV_PATH_AUTO);
}
SHMEM_CATCH(shmemx_kv_ops_t*)

extern "C" shmemx_kv_ops_t* shmemx_kv_ops_create_by_path(uint32_t block_dims, shmemx_stream_t* stream,
                                                         int path) noexcept try {
  auto ops = std::make_unique<shmemx_kv_ops>();
  ops->stream = stream;
  if (block_dims == 0) {
    shmem::log(shmem::LogLevel::kError, "shmem: KVShuffleOps: block_dims is 0");
  }
  // Not 0, which means the default in shmemx_kv_options_t.
  constexpr std::uint32_t kMost = 1U << 16;
  const shmemx_kv_options_t options{block_dims == 0 ? -1 : static_cast<int32_t>(std::min(block_dims, kMost)), path, 0};
  ops->error = std::errc{-shmemx_kv_op_create(SHMEM_TEAM_WORLD, &options, &ops->op)};
  return ops.release();
} catch (const std::bad_alloc&) {
  shmem::log(shmem::LogLevel::kError, "shmem: KVShuffleOps: out of memory");
  return nullptr;
}
SHMEM_CATCH(shmemx_kv_ops_t*)

extern "C" void shmemx_kv_ops_compute(shmemx_kv_ops_t* ops, uint8_t* k_cache, uint8_t* v_cache,
                                      const uint8_t* global_shuffle_table, const uint8_t* src_block_table,
                                      const uint8_t* dst_block_table, int64_t block_nums, int64_t kv_head_num,
                                      int64_t page_size, int64_t head_dim) noexcept try {
  api::running_on_host(kCompute);
  if (ops == nullptr) {
    api::give_to_stream(kCompute, nullptr, [] { return refuse("the operator is NULL"); });
    return;
  }
  const Call call{reinterpret_cast<std::byte*>(k_cache),
                  reinterpret_cast<std::byte*>(v_cache),
                  reinterpret_cast<const std::int64_t*>(global_shuffle_table),
                  reinterpret_cast<const std::int64_t*>(src_block_table),
                  reinterpret_cast<const std::int64_t*>(dst_block_table),
                  block_nums,
                  kv_head_num,
                  page_size,
                  head_dim};
  ops->unfinished.begin();
  api::give_to_stream(kCompute, ops->stream, [ops, call] {
    const std::errc error = ops->op != nullptr ? carry_out(*ops->op, call) : ops->error;
    ops->unfinished.end();
    return error;
  });
}
SHMEM_CATCH(void)

extern "C" void shmemx_kv_ops_destroy(shmemx_kv_ops_t* ops) noexcept try {
  if (ops == nullptr) {
    return;
  }
  const std::unique_ptr<shmemx_kv_ops> owned(ops);
  ops->unfinished.wait();
  shmemx_kv_op_destroy(ops->op);
}
SHMEM_CATCH(void)
