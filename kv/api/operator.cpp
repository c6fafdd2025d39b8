// SPDX-License-Identifier: Apache-2.0
// The calls that create and destroy operators, and that execute plans: blocking, in two phases, and on a stream.
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "kv/api/operator_metrics.hpp"
#include "kv/api/plan.hpp"
#include "kv/api/team.hpp"
#include "kv/exchange/metrics_server.hpp"
#include "kv/operator/operator.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/api/stream.hpp"

using shmem::Error;
using shmem::Result;
using shmem::Runtime;
using shmem::SyncWord;
using shmem::Team;
using shmem::kv::Cache;
using shmem::kv::Operator;
namespace api = shmem::api;

namespace {

/// A shuffle that was started, and whose end the program has not seen.
class Started {
 public:
  void end(Result<void> outcome) {
    outcome_ = std::move(outcome);
    // Release: pairs with has_ended() of the program's thread.
    ended_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  /// REQUIRES: has_ended().
  [[nodiscard]] const Result<void>& outcome() const { return outcome_; }

 private:
  Result<void> outcome_;
  std::atomic<bool> ended_{false};
};

}  // namespace

/// Owned by the application, between create and destroy.
struct shmemx_kv_op {
  std::byte* memory;  // symmetric
  int team;           // its own; -1: this PE only provides memory
  std::unique_ptr<Operator> operation;
  std::unique_ptr<api::OperatorCounters> counters = std::make_unique<api::OperatorCounters>();
  std::optional<Started> started{};
  // Last: they use the others.
  std::unique_ptr<shmem::Stream> stream{};                    // of started shuffles
  std::unique_ptr<shmem::exchange::MetricsServer> metrics{};  // null: does not answer
};

namespace {

constexpr unsigned kStatusBits = 16;

std::uint64_t digest_of(const shmem::kv::OperatorSettings& settings) {
  shmem::kv::Digest digest;
  for (const auto number : {static_cast<std::int64_t>(settings.cores), static_cast<std::int64_t>(settings.path),
                            static_cast<std::int64_t>(settings.staging_room)}) {
    digest.add(number);
  }
  return digest.value();
}

/// What a PE has published in its word. REQUIRES: a sync since.
Result<std::uint64_t> published(Runtime& runtime, const SyncWord& mine, int pe) {
  if (const auto* local = static_cast<const SyncWord*>(runtime.translate(&mine, pe)); local != nullptr) {
    // Acquire: pairs with publish() on that PE.
    return local->value.load(std::memory_order_acquire);
  }
  const auto word = runtime.job().locate_remote(&mine.value, sizeof(std::uint64_t), pe);
  std::uint64_t theirs = 0;
  const auto got = runtime.job().network->get(&theirs, *word, sizeof theirs);
  return got ? Result<std::uint64_t>(theirs) : got.error();
}

/// Collective over the world, or what is left of it: success if all PEs have succeeded with the same settings.
/// Otherwise the Error names the first PE that has not.
Result<void> agree(Runtime& runtime, SyncWord& mine, std::uint64_t settings, std::errc error) {
  const std::uint64_t said = settings << kStatusBits | static_cast<std::uint16_t>(error);
  shmem::publish(mine, said);
  Team& everybody = runtime.teams().home();
  if (auto ok = everybody.sync(); !ok) {
    return ok;
  }
  for (int i = 0; i < everybody.size(); ++i) {
    const int pe = everybody.map().pe(i);
    const auto theirs = published(runtime, mine, pe);
    if (!theirs) {
      return theirs.error();
    }
    const auto status = static_cast<std::errc>(static_cast<std::uint16_t>(*theirs));
    if (status != std::errc{}) {
      return shmem::fail(
          status, fmt::format("shmem: PE {}: shmemx_kv_op_create failed on PE {}: {} (its own message says more)",
                              runtime.my_pe(), pe, std::make_error_code(status).message()));
    }
    if (*theirs != said) {
      return shmem::fail(
          std::errc::invalid_argument,
          fmt::format("shmem: PE {}: shmemx_kv_op_create: PE {} has other options than this PE", runtime.my_pe(), pe));
    }
  }
  return {};
}

/// A PE's parts of an operator.
struct Parts {
  int team = -1;
  std::unique_ptr<Operator> operation{};
};

/// Collective over `parent`, if there is one: creates a team of the same PEs, and the operator.
Result<void> make_parts(Runtime& runtime, Team* parent, const shmem::kv::OperatorSettings& settings, std::byte* memory,
                        Parts& parts) {
  if (parent == nullptr) {
    return {};
  }
  shmem::SplitRequest request{{shmem::TeamCall::kStrided, 0, 1, parent->size()}};
  request.map = parent->map();
  auto team = runtime.teams().split(*parent, request);
  if (!team) {
    return team.error();
  }
  parts.team = *team;
  auto made = Operator::create(api::operator_team(runtime, *runtime.teams().find(static_cast<std::size_t>(*team))),
                               settings, runtime.job().policy_for(runtime.job().size * settings.cores), memory);
  if (!made) {
    return made.error();
  }
  parts.operation = *std::move(made);
  return {};
}

Result<void> release(Runtime& runtime, int team, std::byte* memory) {
  Result<void> ended{};
  if (team >= 0) {
    ended = runtime.teams().destroy(team);
  }
  auto freed = runtime.heap().free(memory);
  return ended ? freed : ended;
}

/// Collective over the world: all PEs have the same valid settings. Called before the memory is allocated, whose size
/// depends on them.
Result<void> agree_on(Runtime& runtime, const shmem::kv::OperatorSettings& settings) {
  static_assert(alignof(SyncWord) <= shmem::Heap::kMinAlignment);
  auto memory = runtime.heap().calloc(1, sizeof(SyncWord));
  if (!memory) {
    return memory.error();
  }
  const auto fits = Operator::check(settings);
  const auto agreed =
      agree(runtime, *static_cast<SyncWord*>(*memory), digest_of(settings), fits ? std::errc{} : fits.error().code);
  auto freed = runtime.heap().free(*memory);
  return !fits ? fits : !agreed ? agreed : freed;
}

Result<std::unique_ptr<shmemx_kv_op>> create(Runtime& runtime, Team* parent,
                                             const shmem::kv::OperatorSettings& settings) {
  if (auto ok = agree_on(runtime, settings); !ok) {
    return ok.error();
  }
  const std::size_t lines = Operator::lines(runtime.n_pes(), settings.cores);
  auto memory = runtime.heap().calloc(lines + 1, sizeof(SyncWord));
  if (!memory) {
    return memory.error();
  }
  auto* const mine = static_cast<std::byte*>(*memory);
  Parts parts;
  const auto made = make_parts(runtime, parent, settings, mine, parts);
  auto agreed = agree(runtime, reinterpret_cast<SyncWord*>(mine)[lines], digest_of(settings),
                      made ? std::errc{} : made.error().code);
  if (!made || !agreed) {
    parts.operation.reset();
    if (auto ok = release(runtime, parts.team, mine); !ok) {
      return ok.error();
    }
    return made ? agreed.error() : made.error();
  }
  return std::unique_ptr<shmemx_kv_op>(
      new shmemx_kv_op{.memory = mine, .team = parts.team, .operation = std::move(parts.operation)});
}

Cache cache_of(const shmemx_kv_cache_t* cache) {
  const shmemx_kv_cache_t given = cache != nullptr ? *cache : shmemx_kv_cache_t{};
  return {.shape = {.format = static_cast<shmem::kv::Format>(given.format),
                    .layers = given.layers,
                    .blocks = given.blocks,
                    .heads = given.kv_heads,
                    .page = given.page_size,
                    .head_dim = given.head_dim,
                    .element_size = given.element_size},
          .place = {.k = static_cast<std::byte*>(given.k), .v = static_cast<std::byte*>(given.v)}};
}

Error error_of(const char* call, std::errc code, const std::string& problem) {
  return {code, fmt::format("shmem: {}: {}", call, problem)};
}

/// Why `op` cannot execute a shuffle, or nothing.
std::optional<Error> problem_of(const char* call, const shmemx_kv_op_t* op) {
  if (op == nullptr) {
    return error_of(call, std::errc::invalid_argument, "op is NULL");
  }
  if (op->operation == nullptr) {
    return error_of(call, std::errc::invalid_argument, "this PE is not in the operator's team");
  }
  if (op->started) {
    return error_of(call, std::errc::device_or_resource_busy,
                    "a shuffle has been started, and neither test nor wait has seen its end");
  }
  return std::nullopt;
}

/// A PE without a plan takes part, so that the others learn about it.
Result<void> run_plan(const shmemx_kv_op_t& op, const shmemx_kv_plan_t* plan, const Cache& cache) try {
  if (plan == nullptr) {
    return op.operation->run(nullptr, cache);
  }
  const auto* pairs = std::get_if<shmem::kv::PairPlan>(&plan->content);
  return pairs != nullptr ? op.operation->run(*pairs, cache)
                          : op.operation->run(&std::get<shmem::kv::MovePlan>(plan->content), cache);
} catch (const std::bad_alloc&) {
  return shmem::fail(std::errc::not_enough_memory, "kv_shuffle: out of memory");
}

/// run_plan(), and counts.
Result<void> shuffle(const shmemx_kv_op_t& op, const shmemx_kv_plan_t* plan, const Cache& cache) {
  const auto begin = api::OperatorCounters::Clock::now();
  auto outcome = run_plan(op, plan, cache);
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  if (outcome) {  // so there is a plan, and the cache is valid
    const auto* pairs = std::get_if<shmem::kv::PairPlan>(&plan->content);
    const auto& moves = pairs != nullptr ? *pairs->own() : std::get<shmem::kv::MovePlan>(plan->content);
    blocks = moves.sent_by(op.operation->me());
    bytes = layout_of(cache.shape)->block_bytes();
  }
  op.counters->count(outcome, begin, blocks, bytes);
  return outcome;
}

int report(const Result<void>& outcome) {
  return outcome ? 0 : api::report_loudly(outcome.error());
}

/// REQUIRES: the started shuffle has ended.
int take_outcome(shmemx_kv_op_t& op) {
  const Result<void> outcome = op.started->outcome();
  op.started.reset();
  return report(outcome);
}

shmem::kv::OperatorSettings settings_of(const shmemx_kv_options_t* options) {
  shmem::kv::OperatorSettings settings;
  if (options != nullptr) {
    settings.cores = options->cores != 0 ? options->cores : settings.cores;
    settings.path = static_cast<shmem::kv::Path>(options->path);
    settings.staging_room = options->staging_bytes != 0 ? options->staging_bytes : settings.staging_room;
  }
  return settings;
}

}  // namespace

extern "C" int shmemx_kv_op_create(shmem_team_t team, const shmemx_kv_options_t* options, shmemx_kv_op_t** op) noexcept
    try {
  Runtime& runtime = api::running_on_host(__func__);
  if (op == nullptr) {
    return api::kv_refuse(__func__, "op is NULL");
  }
  *op = nullptr;
  Team* const parent = team == SHMEM_TEAM_INVALID ? nullptr : &api::valid_team(runtime, __func__, team);
  auto made = create(runtime, parent, settings_of(options));
  if (!made) {
    return api::report_loudly(made.error());
  }
  *op = made->release();
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_op_create");
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_op_destroy(shmemx_kv_op_t* op) noexcept try {
  Runtime& runtime = api::running_on_host(__func__);
  if (op == nullptr) {
    return 0;
  }
  const std::unique_ptr<shmemx_kv_op> owned(op);
  owned->metrics.reset();
  owned->stream.reset();  // waits for a started shuffle
  owned->operation.reset();
  auto ok = release(runtime, owned->team, owned->memory);
  return ok ? 0 : api::report_loudly(ok.error());
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_op_destroy");
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_shuffle(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                 const shmemx_kv_cache_t* cache) noexcept try {
  api::running_on_host(__func__);
  if (const auto problem = problem_of(__func__, op); problem) {
    return api::report_loudly(*problem);
  }
  return report(shuffle(*op, plan, cache_of(cache)));
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_shuffle");
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_shuffle_start(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                       const shmemx_kv_cache_t* cache) noexcept try {
  api::running_on_host(__func__);
  if (const auto problem = problem_of(__func__, op); problem) {
    return api::report_loudly(*problem);
  }
  if (op->stream == nullptr) {
    op->stream = std::make_unique<shmem::Stream>();
  }
  op->started.emplace();
  op->stream->give([op, plan, copy = cache_of(cache)] {
    op->started->end(shuffle(*op, plan, copy));
    return std::errc{};
  });
  return 0;
} catch (const std::system_error& error) {
  return api::kv_fail("shmemx_kv_shuffle_start",
                      {std::errc::resource_unavailable_try_again, fmt::format("no thread: {}", error.what())});
} catch (const std::bad_alloc&) {
  op->started.reset();
  return api::kv_out_of_memory("shmemx_kv_shuffle_start");
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_shuffle_test(shmemx_kv_op_t* op, int* done) noexcept try {
  api::running_on_host(__func__);
  if (op == nullptr || done == nullptr || !op->started) {
    return api::kv_refuse(__func__, op == nullptr     ? "op is NULL"
                                    : done == nullptr ? "done is NULL"
                                                      : "nothing was started");
  }
  *done = op->started->has_ended() ? 1 : 0;
  return *done != 0 ? take_outcome(*op) : 0;
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_shuffle_wait(shmemx_kv_op_t* op) noexcept try {
  api::running_on_host(__func__);
  if (op == nullptr || !op->started) {
    return api::kv_refuse(__func__, op == nullptr ? "op is NULL" : "nothing was started");
  }
  op->stream->wait();
  return take_outcome(*op);
}
SHMEM_CATCH(int)

extern "C" void shmemx_kv_shuffle_on_stream(shmemx_kv_op_t* op, const shmemx_kv_plan_t* plan,
                                            const shmemx_kv_cache_t* cache, shmemx_stream_t* stream) noexcept try {
  api::give_to_stream(__func__, stream, [op, plan, copy = cache_of(cache)] {
    const auto problem = problem_of("shmemx_kv_shuffle_on_stream", op);
    const Result<void> outcome = problem ? *problem : shuffle(*op, plan, copy);
    if (!outcome) {
      api::report_loudly(outcome.error());
    }
    return outcome ? std::errc{} : outcome.error().code;
  });
}
SHMEM_CATCH(void)

extern "C" int shmemx_kv_op_stats(const shmemx_kv_op_t* op, shmemx_kv_stats_t* stats) noexcept try {
  api::running(__func__);
  if (op == nullptr || stats == nullptr) {
    return api::kv_refuse(__func__, op == nullptr ? "op is NULL" : "stats is NULL");
  }
  *stats = op->counters->stats();
  stats->metrics_port = op->metrics ? op->metrics->port() : 0;
  return 0;
}
SHMEM_CATCH(int)

extern "C" int shmemx_kv_op_metrics(shmemx_kv_op_t* op, const char* address) noexcept try {
  Runtime& runtime = api::running_on_host(__func__);
  if (op == nullptr || address == nullptr) {
    return api::kv_refuse(__func__, op == nullptr ? "op is NULL" : "address is NULL");
  }
  if (op->metrics) {
    return api::kv_fail(__func__, {std::errc::connection_already_in_progress,
                                   fmt::format("the operator answers at port {} already", op->metrics->port())});
  }
  auto server = shmem::exchange::MetricsServer::start(
      address, [&counters = *op->counters, pe = runtime.my_pe()] { return counters.page(pe); });
  if (!server) {
    return api::kv_fail(__func__, server.error());
  }
  op->metrics = *std::move(server);
  return 0;
} catch (const std::bad_alloc&) {
  return api::kv_out_of_memory("shmemx_kv_op_metrics");
}
SHMEM_CATCH(int)
