// SPDX-License-Identifier: Apache-2.0
// kv_shuffle.
#include <new>

#include "shmem/api/kernel_core.hpp"
#include "shmem/kv/shuffle.hpp"
#include "shmem/team/peers.hpp"

using shmem::Clock;
using shmem::Context;
using shmem::Job;
using shmem::Result;
using shmem::SyncWord;
using shmem::kv::KvShuffle;
namespace api = shmem::api;

/// Owned by the application, between create and destroy.
struct shmemx_kv_shuffle {
  std::unique_ptr<KvShuffle> operation;
  void* flags;  // symmetric
};

namespace {

/// Ends a call that waits for a partner who does not come. Looked at by several cores at once.
class PartnerWatch {
 public:
  PartnerWatch(const Job& job, int partner) : job_(job), partner_(partner) {
    const auto limit = job.options.barrier_timeout;
    deadline_ = limit.count() > 0 ? Clock::now() + limit : Clock::time_point::max();
  }

  std::errc operator()() const {
    if (job_.bootstrap->aborted()) {
      return std::errc::operation_canceled;
    }
    if (shmem::is_dead(job_, partner_)) {
      return std::errc::owner_dead;
    }
    return Clock::now() < deadline_ ? std::errc{} : std::errc::timed_out;
  }

 private:
  const Job& job_;
  int partner_;
  Clock::time_point deadline_;
};

shmem::kv::Site site_of(const Context& context, int cores) {
  const Job& job = context.job();
  return {job.me, job.size, job.policy_for(job.size * cores),
          [&job](const void* mine, int pe) { return job.translate(mine, pe); },
          [&job](int partner) { return PartnerWatch(job, partner); }};
}

/// Collective: all PEs have made their operator, or each hears of the first that has not.
Result<void> agree(Context& context, SyncWord& mine, std::errc error) {
  shmem::publish(mine, static_cast<std::uint64_t>(error));
  if (auto ok = context.teams().find(SHMEM_TEAM_WORLD)->sync(); !ok) {
    return ok;
  }
  for (int pe = 0; pe < context.n_pes(); ++pe) {
    const auto& word = *static_cast<const SyncWord*>(context.translate(&mine, pe));
    // Acquire: pairs with the publish above, on that PE.
    const auto status = static_cast<std::errc>(word.value.load(std::memory_order_acquire));
    if (status != std::errc{}) {
      return shmem::fail(status, "shmem: PE " + std::to_string(context.my_pe()) +
                                     ": shmemx_kv_shuffle_create failed on PE " + std::to_string(pe) + ": " +
                                     std::make_error_code(status).message() + " (its own message says more)");
    }
  }
  return {};
}

Result<std::unique_ptr<shmemx_kv_shuffle>> create(Context& context, int cores) {
  const auto fits = KvShuffle::check_cores(cores);
  // All PEs are in this call: one that asks for an impossible number takes part with a size of its own, and the others
  // hear of it.
  const std::size_t flags = fits ? KvShuffle::flag_count(context.n_pes(), cores) : 0;
  static_assert(alignof(SyncWord) <= shmem::Heap::kMinAlignment);
  auto memory = context.heap().calloc(flags + 1, sizeof(SyncWord));
  if (!memory) {
    return tl::make_unexpected(memory.error());
  }
  auto* words = static_cast<SyncWord*>(*memory);
  auto operation = fits ? KvShuffle::create(site_of(context, cores), cores, words)
                        : Result<std::unique_ptr<KvShuffle>>(tl::make_unexpected(fits.error()));
  auto agreed = agree(context, words[flags], operation ? std::errc{} : operation.error().code);
  if (!operation || !agreed) {
    if (auto ok = context.heap().free(*memory); !ok) {
      return tl::make_unexpected(ok.error());
    }
    return tl::make_unexpected(operation ? agreed.error() : operation.error());
  }
  return std::unique_ptr<shmemx_kv_shuffle>(new shmemx_kv_shuffle{*std::move(operation), *memory});
}

int refuse(const char* call, const char* problem) {
  return api::report_loudly({std::errc::invalid_argument, std::string("shmem: ") + call + ": " + problem});
}

int out_of_memory(const char* call) {
  return api::report_loudly({std::errc::not_enough_memory, std::string("shmem: ") + call + ": out of memory"});
}

}  // namespace

extern "C" int shmemx_kv_shuffle_create(int cores, shmemx_kv_shuffle_t** out) noexcept try {
  Context& context = api::running_on_host(__func__);
  if (out == nullptr) {
    return refuse(__func__, "out is NULL");
  }
  *out = nullptr;
  auto made = create(context, cores);
  if (!made) {
    return api::report_loudly(made.error());
  }
  *out = made->release();
  return 0;
} catch (const std::bad_alloc&) {
  return out_of_memory("shmemx_kv_shuffle_create");
}

extern "C" int shmemx_kv_shuffle_destroy(shmemx_kv_shuffle_t* op) noexcept try {
  Context& context = api::running_on_host(__func__);
  if (op == nullptr) {
    return 0;
  }
  const std::unique_ptr<shmemx_kv_shuffle> owned(op);
  auto ok = context.heap().free(owned->flags);
  return ok ? 0 : api::report_loudly(ok.error());
} catch (const std::bad_alloc&) {
  return out_of_memory("shmemx_kv_shuffle_destroy");
}

extern "C" int shmemx_kv_shuffle_run(shmemx_kv_shuffle_t* op, void* k_cache, void* v_cache,
                                     const shmemx_kv_shape_t* shape, const int64_t* global_shuffle_table,
                                     const int64_t* src_block_table, const int64_t* dst_block_table,
                                     int64_t block_count) noexcept try {
  api::running_on_host(__func__);
  if (op == nullptr) {
    return refuse(__func__, "op is NULL");
  }
  const shmemx_kv_shape_t given = shape != nullptr ? *shape : shmemx_kv_shape_t{};
  const shmem::kv::Call call{static_cast<std::byte*>(k_cache),
                             static_cast<std::byte*>(v_cache),
                             {given.blocks, given.kv_heads, given.page_size, given.head_dim, given.element_size},
                             global_shuffle_table,
                             src_block_table,
                             dst_block_table,
                             block_count};
  auto ok = op->operation->run(call);
  return ok ? 0 : api::report_loudly(ok.error());
} catch (const std::bad_alloc&) {
  return out_of_memory("shmemx_kv_shuffle_run");
}
