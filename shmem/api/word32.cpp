// SPDX-License-Identifier: Apache-2.0
// Words of 32 bits anywhere in this node's memory: setting them, and waiting until they are at least a number.
#include <bit>

#include "shmem/api/waiting.hpp"
#include "shmem_device.h"

namespace api = shmem::api;
using shmem::Job;
using shmem::SyncWord;

namespace {

static_assert(std::endian::native == std::endian::little, "the lower half of a word of a pool is at its beginning");

/// A word of a pool begins at `word`.
bool is_in_pool(const Job& job, const std::int32_t* word) {
  const auto offset = reinterpret_cast<std::uintptr_t>(word) - reinterpret_cast<std::uintptr_t>(job.memory.metadata(0));
  return offset < shmem::kMetadataSize * static_cast<std::size_t>(job.size) &&
         offset % shmem::kMetadataSize >= shmem::kKernelSyncOffset && offset % sizeof(SyncWord) == 0;
}

/// REQUIRES: is_in_pool(word).
SyncWord& pool_word(const std::int32_t* word) {
  return *reinterpret_cast<SyncWord*>(const_cast<std::int32_t*>(word));
}

/// The PE of this node whose heap has the word; this PE for memory that is in none.
int owner_of(const Job& job, const std::int32_t* word) {
  const int other = job.other_heap_with(word, sizeof *word);
  return other >= 0 ? other : job.me;
}

/// A number that only grows and may wrap around.
bool has_reached(std::uint32_t seen, std::int32_t value) {
  return static_cast<std::int32_t>(seen - static_cast<std::uint32_t>(value)) >= 0;
}

void check_address(const shmem::Runtime& runtime, const char* call, const std::int32_t* word) {
  if (word == nullptr || reinterpret_cast<std::uintptr_t>(word) % alignof(std::int32_t) != 0) {
    api::end_job(runtime, call, "{} is not the address of an aligned word", fmt::ptr(word));
  }
}

/// Waits for a word: of a pool, whose setter wakes its waiters; of this PE's heap, whose setter wakes this PE; or of
/// another PE or of memory that others change unnoticed, by looking again and again.
template <typename Reached, typename Check>
std::errc wait_for(const Job& job, const std::int32_t* word, const shmem::WaitPolicy& policy, Reached reached,
                   Check check) {
  if (is_in_pool(job, word)) {
    return shmem::wait_on(
        pool_word(word), policy, [&](std::uint64_t seen) { return reached(static_cast<std::uint32_t>(seen)); }, check);
  }
  // Acquire: pairs with shmemx_word32_set and the calls for signals.
  const std::atomic_ref<std::int32_t> seen(*const_cast<std::int32_t*>(word));
  const auto done = [&] { return reached(static_cast<std::uint32_t>(seen.load(std::memory_order_acquire))); };
  if (job.is_in_heap(word)) {
    return shmem::wait_parked(job, done, check);
  }
  return shmem::wait_polling(policy, api::kNapElsewhere, done, check);
}

}  // namespace

extern "C" {

void shmemx_word32_set(int32_t* word, int32_t value) noexcept try {
  constexpr const char* kCall = "shmemx_word32_set";
  const shmem::Runtime& runtime = api::running(kCall);
  check_address(runtime, kCall, word);
  const Job& job = runtime.job();
  if (is_in_pool(job, word)) {
    shmem::publish(pool_word(word), static_cast<std::uint32_t>(value));
    return;
  }
  // Sequentially consistent, as wake_parked requires.
  std::atomic_ref<std::int32_t>(*word).exchange(value, std::memory_order_seq_cst);
  shmem::wake_parked(job, owner_of(job, word));
}
SHMEM_CATCH(void)

int32_t shmemx_word32_wait_at_least(const int32_t* word, int32_t value) noexcept try {
  constexpr const char* kCall = "shmemx_word32_wait_at_least";
  const shmem::Runtime& runtime = api::running(kCall);
  check_address(runtime, kCall, word);
  const Job& job = runtime.job();
  shmemx_core_t* core = api::current_core();
  std::uint32_t last = 0;
  const auto reached = [&](std::uint32_t seen) { return has_reached(last = seen, value); };
  api::WordMonitor monitor(runtime, kCall, core, [&] {
    return fmt::format("{}, which has not reached {} ({})", static_cast<std::int32_t>(last), value,
                       api::place_text(runtime, word));
  });
  if (core == nullptr) {
    const std::errc error = wait_for(job, word, job.policy, reached, [&monitor] { return monitor(); });
    if (error != std::errc{}) {
      api::end_job(runtime, kCall, monitor.explain(error));
    }
  } else if (core->error == std::errc{}) {
    const std::errc error =
        wait_for(job, word, core->core.policy(), reached, shmem::WatchedCheck(core->core.check(), monitor));
    if (error != std::errc{}) {
      core->keep(shmem::fail(error, api::said_by(*core, kCall) + monitor.explain(error)));
    }
  }
  return static_cast<std::int32_t>(last);
}
SHMEM_CATCH(int32_t)
}
