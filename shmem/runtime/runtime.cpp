// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/runtime.hpp"
#include "shmem/config/failure.hpp"
#include "shmem/config/log.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/size_text.hpp"
#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/local.hpp"
#include "shmem/bootstrap/nodes.hpp"
#include "shmem/config/config_file.hpp"
#include "shmem/heap/block_marks.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/memory/memory_limit.hpp"
#include "shmem/memory/ordering.hpp"
#include "shmem/runtime/backtrace.hpp"
#include "shmem/runtime/memory_registration.hpp"

namespace shmem {
namespace {

/// The listener that the next job of this process may use.
std::optional<UidListener>& kept_listener() {
  static std::optional<UidListener> listener;
  return listener;
}

/// The global variables as the cores see them.
CoreGlobals core_globals(const Job& job) {
  CoreGlobals globals{};
  globals.stride = job.memory.globals_size();
  std::uint64_t first = reinterpret_cast<std::uintptr_t>(job.memory.globals(0));
  for (const GlobalRange& range : job.globals.shared_ranges()) {
    if (globals.count == globals.ranges.size()) {
      break;
    }
    globals.ranges[globals.count++] = {reinterpret_cast<std::uintptr_t>(range.begin), range.size, first};
    first += range.size;
    for (int pe = 0; pe < std::min<int>(job.size, CoreGlobals::kMostPes); ++pe) {
      const std::uint64_t has_them = job.globals.locate(range.begin, pe).address != nullptr ? 1 : 0;
      globals.has_them[static_cast<std::size_t>(pe) / 64] |= has_them << (pe % 64);
    }
  }
  return globals;
}

/// Collective: false if a PE with a lower number has the same reason, but for the number of the PE in it, and oshrun
/// prints what both say. PEs that were started otherwise may each have a terminal, or a log, of their own.
bool is_first_with(Bootstrap& bootstrap, const std::string& reason) {
  if (dynamic_cast<LocalBootstrap*>(&bootstrap.everybody()) == nullptr) {
    return true;
  }
  constexpr std::string_view kStart = "shmem: PE ";
  const auto after_number = reason.rfind(kStart, 0) == 0 ? reason.find(':', kStart.size()) : std::string::npos;
  const std::size_t mine =
      std::hash<std::string>()(after_number == std::string::npos ? reason : reason.substr(after_number));
  Bootstrap& everybody = bootstrap.everybody();
  const auto all = allgather(everybody, mine);
  return !all || std::find(all->begin(), all->end(), mine) - all->begin() == everybody.rank();
}

/// All PEs map the heaps of all PEs of their node.
void warn_of_locked_memory(const Options& options, const Bootstrap& bootstrap) {
  log(LogLevel::kWarn,
      "shmem: PE %d has called mlockall(MCL_FUTURE): the symmetric heaps (%d of %s) take all their memory now, not "
      "when it is used; add MCL_ONFAULT, or set a smaller SHMEM_SYMMETRIC_SIZE",
      bootstrap.rank(), bootstrap.size(), base::size_text(options.symmetric_size).c_str());
}

}  // namespace

constinit Runtime* Runtime::current_ = nullptr;
constinit std::atomic<Runtime*> Runtime::owned_{nullptr};
constinit Reach Runtime::reach_;

bool Runtime::is_reporter_ = true;
constinit std::atomic<bool> Runtime::is_exiting_{false};
constinit std::atomic<bool> Runtime::has_left_{false};

namespace {

/// In a child made by fork(): the parent's runtime, which stays reachable for leak checkers.
constinit std::atomic<Runtime*> parents_runtime{nullptr};

}  // namespace

void Runtime::forget_in_child() {
  if (Runtime* parents = std::exchange(current_, nullptr); parents != nullptr) {
    parents_runtime.store(parents, std::memory_order_relaxed);
  }
  owned_.store(nullptr, std::memory_order_relaxed);
  reach_ = {};
}

void Runtime::destroy() {
  // At exit nothing is destroyed. Acquire and release: another thread may have made it.
  if (const std::unique_ptr<Runtime> mine(owned_.exchange(nullptr, std::memory_order_acq_rel)); mine) {
    current_ = nullptr;
  }
}

int Runtime::parent_pe() {
  const Runtime* parents = parents_runtime.load(std::memory_order_relaxed);
  return parents != nullptr ? parents->my_pe() : -1;
}

Runtime::Runtime(Key /*key*/, Job job, int thread_level)
    : job_(std::move(job)),
      network_(job_),
      thread_level_(thread_level),
      barriers_(job_),
      teams_(job_,
             [this](Team& team) {
               const TeamMap& map = team.map();
               debug(fmt::format("is member {} of team {}: {} PEs from {} in steps of {}", team.me(), team.slot(),
                                 map.size, map.start, map.stride));
               return barriers_.equip(team);
             }),
      sets_(job_, [this](Team& team) { return barriers_.equip_set(team); }),
      heap_(job_, {.barrier = [this] { return teams_.home().sync(); },
                   .count = [this] { return teams_.home().stats().total(); },
                   .callers =
                       [this] {
                         return SymmetricHeap::Rendezvous::Callers{teams_.home().map_here(), teams_.home().slot()};
                       },
                   .vote = [this](std::uint64_t digest,
                                  std::uint64_t number) { return teams_.home().vote(digest, true, number); },
                   .announce = [this](const HeapCall& call) { check_heap_call(call); },
                   .released = [this](std::span<const std::byte> block) { network_.forget_groups(block); }}),
      survival_(job_, teams_, heap_),
      registration_(std::make_unique<MemoryRegistration>(job_, teams_)),
      checker_(job_.options.debug ? std::make_unique<Checker>(job_, heap_) : nullptr),
      counts_(job_.options.info ? &job_.metadata(job_.me).calls : nullptr),
      watches_calls_(checker_ || counts_ != nullptr) {
  block_marks::begin();
  const bool checked = watches_calls_ || job_.on_several_nodes();
  reach_ = {.mine = reinterpret_cast<std::uintptr_t>(job_.memory.heap(job_.me)),
            .unchecked_heap = checked ? 0 : job_.memory.heap_size(),
            .first = job_.memory.heap(0),
            .metadata = &job_.metadata(0),
            .pes = job_.world_size(),
            .several_nodes = job_.on_several_nodes()};
}

Runtime::~Runtime() {
  reach_ = {};
  block_marks::end();
}

void Runtime::check_heap_call(const HeapCall& call) const {
  if (!checker_) {
    return;
  }
  const std::string text = to_string(call);
  if (const auto problem =
          checker_->compare({teams_.home().slot(), teams_.home().map_here()}, text, thread_rule(thread_level_))) {
    end_job_of(text, *problem);
  }
}

void Runtime::check_end() const {
  constexpr const char* kCall = "shmem_finalize";
  auto problem = checker_->held_locks();
  if (!problem) {
    problem = checker_->compare({teams_.home().slot(), teams_.home().map_here()}, fmt::format("{}()", kCall),
                                thread_rule(thread_level_));
  }
  if (problem) {
    end_job_of(kCall, *problem);
  }
  if (const auto note = checker_->leaks(); note && job_.world_me() == 0) {
    log(LogLevel::kInfo, "shmem: PE 0: %s: %s", kCall, note->c_str());
  }
}

Result<void> Runtime::start(int thread_level) {
  attach_end_report();  // a wrong variable is an end, too
  auto options = process_options();
  if (!options) {
    return options.error();
  }
  auto request = bootstrap_request(*options);
  return start(thread_level, *std::move(options), std::move(request));
}

void Runtime::keep(UidListener listener) {
  kept_listener() = std::move(listener);
}

std::optional<UidListener> Runtime::take_listener(const UniqueId& id) {
  const bool same = kept_listener() && kept_listener()->id.secret == id.secret;
  return same ? std::exchange(kept_listener(), std::nullopt) : std::nullopt;
}

Result<Job> Runtime::find_job(Options options, BootstrapRequest request) {
  auto bootstrap = make_bootstrap(std::move(request));
  if (!bootstrap) {
    return bootstrap.error();
  }
  NodeIdentity identity = node_identity(options.host_id, options.job_folder());
  identity.locks_new_memory = locks_new_memory();
  identity.survives = wants_to_survive();
  auto where = find_nodes(**bootstrap, identity);
  if (!where) {
    return where.error();
  }
  if (where->first_locking == (*bootstrap)->rank()) {
    warn_of_locked_memory(options, **bootstrap);
  }
  Nodes& nodes = where->nodes;
  auto globals = SymmetricGlobals::plan(**bootstrap, find_globals(options.symmetric_globals_skip),
                                        options.symmetric_globals ? "" : "SHMEM_SYMMETRIC_GLOBALS=off");
  if (!globals) {
    return globals.error();
  }
  if (nodes.several()) {
    globals->only_here(nodes.here);
    bootstrap = std::make_unique<NodeBootstrap>(*std::move(bootstrap), nodes);
  }
  auto memory = Survival::open_memory(**bootstrap, options, globals->size());
  if (!memory) {
    is_reporter_ = (*bootstrap)->replaces() || is_first_with(**bootstrap, memory.error().text);
    return fail(memory.error().code, memory.error().text + (nodes.several() ? fmt::format(" ({})", nodes.text()) : ""));
  }
  const int me = (*bootstrap)->rank();
  const int size = (*bootstrap)->size();
  WaitPolicy policy = policy_on(nodes, size, where->processors);
  policy.alarm = (*bootstrap)->alarm();
  return Job{.options = std::move(options),
             .bootstrap = *std::move(bootstrap),
             .memory = *std::move(memory),
             .me = me,
             .size = size,
             .policy = policy,
             .globals = *std::move(globals),
             .processors = where->processors,
             .nodes = std::move(nodes),
             .first_without_survive = where->first_without_survive};
}

Result<void> Runtime::start(int thread_level, Options options, BootstrapRequest request) {
  finish_at_exit();
  attach_end_report();
  wait_while_held();
  is_reporter_ = true;
  auto job = find_job(std::move(options), std::move(request));
  if (!job) {
    return job.error();
  }
  job->watch_sharing();
  current_ = std::make_unique<Runtime>(Key{}, *std::move(job), thread_level).release();
  owned_.store(current_, std::memory_order_release);
  if (current_->job_.options.backtrace && !errors_return()) {
    report_crashes(current_->my_pe());  // before a device is open, whose handler of SIGBUS hands on to this one
  }
  auto ok = current_->open();
#ifdef __GLIBC__
  ::malloc_trim(0);  // what only the start needed: a node may have hundreds of PEs
#endif
  if (!ok) {
    current_->survival_.give_up_start(ok.error().text);
    destroy();
    forget_crashes();
  }
  return ok;
}

Result<void> Runtime::meet() {
  join_store_barriers();
  survival_.announce();
  introduce(job_);
  sets_.announce(thread_level_ < kThreadMultiple && !checker_);
  job_.core_state().job.write({job_.me, job_.size, reinterpret_cast<std::uintptr_t>(job_.memory.heap(0)),
                               job_.memory.heap_size(), reinterpret_cast<std::uintptr_t>(job_.memory.board())});
  barriers_.open_port();
  // Also a barrier: after it all PEs have mapped the memory and stored their pids.
  if (auto ok = job_.globals.share(job_.world_bootstrap(), job_.memory); !ok) {
    return ok;
  }
  sets_.settle();
  return survival_.settle();
}

Result<void> Runtime::open() {
  if (auto ok = barriers_.load_tables(); !ok) {
    return ok;
  }
  if (auto ok = meet(); !ok) {
    return ok;
  }
  if (auto ok = barriers_.settle_ports(); !ok) {
    return ok;
  }
  if (auto ok = network_.open(survives()); !ok) {
    return ok;
  }
  job_.core_state().globals.write(core_globals(job_));
  if (job_.options.cycle_prof_pe == job_.world_me()) {
    profile_ = std::make_unique<Profile>();
    profile_->pe = job_.world_me();
  }
  if (auto ok = open_trace(); !ok) {
    return ok;
  }
  report_start();
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "of %d is process %d; its heap is at %p, %zu bytes", job_.world_size(),
                ::getpid(), static_cast<void*>(job_.memory.heap(job_.me)), job_.memory.heap_size());
  debug(text.data());
  if (survival_.replaces()) {
    teams_.make_lost();
    return {};
  }
  auto ok = teams_.make_predefined();
  if (ok) {
    report_rest();
  }
  return ok;
}

Result<void> Runtime::open_trace() {
  if (job_.options.trace.empty()) {
    return {};
  }
  const PeMetadata& first = job_.metadata(0);
  const std::uint64_t zero = first.started.load(std::memory_order_relaxed);
  const std::string id = fmt::format("{}-{}", first.pid.load(std::memory_order_relaxed), zero);
  // One file per node: only PEs of one node can append to a common file.
  const std::string suffix = job_.nodes.mine > 0 ? fmt::format(".{}", job_.nodes.mine) : "";
  auto file = TraceFile::open(job_.options.trace + suffix, id);
  if (!file) {
    return fail(file.error().code, fmt::format("shmem: PE {}: no trace: {}", job_.world_me(), file.error().text));
  }
  trace_ = std::make_unique<Trace>(*std::move(file), job_.world_me(), zero);
  job_.trace = trace_.get();
  return {};
}

Stream& Runtime::default_stream() {
  const std::lock_guard lock(stream_mutex_);
  if (!stream_) {
    stream_ = std::make_unique<Stream>();
    started_stream_.store(stream_.get(), std::memory_order_release);
  }
  return *stream_;
}

bool Runtime::first_notice(const std::string& text) {
  const std::lock_guard lock(notices_mutex_);
  return notices_.insert(text).second;
}

Result<void> Runtime::on_cores(int count, const std::function<Result<void>(CoreGroup&)>& use) {
  const std::unique_lock lock(cores_in_use_, std::try_to_lock);
  if (!lock) {
    return fail(std::errc::device_or_resource_busy, "shmemx_launch: another thread of this PE runs a kernel");
  }
  if (!cores_ || cores_->count() != count) {
    // The cores of all PEs wait for each other.
    auto group = CoreGroup::create(count, job_.policy_for(job_.size * std::max(count, 1)));
    if (!group) {
      return group.error();
    }
    cores_ = *std::move(group);
  }
  return use(*cores_);
}

bool Runtime::is_own_process() const {
  return job_.metadata(job_.me).pid.load(std::memory_order_relaxed) == ::getpid();
}

void Runtime::debug(const std::string& text) const {
  if (job_.options.debug) {
    log(LogLevel::kDebug, "shmem: PE %d: %s", job_.world_me(), text.c_str());
  }
}

Result<void> Runtime::stop() {
  const auto ok = current_->leave_job();
  destroy();
  forget_crashes();
  return ok;
}

Result<void> Runtime::leave_job() {
  debug("ends");
  report_sharing();
  if (Stream* stream = started_default_stream(); stream != nullptr) {
    stream->wait();
  }
  if (checker_) {
    check_end();
  }
  Result<void> ok = teams_.home().sync();
  sets_.clear();
  if (ok) {
    ok = teams_.destroy_all();
  }
  report_calls();
  if (ok) {
    ok = network_.disconnect(teams_.home_is_world());
  }
  job_.bootstrap->leave();
  return ok;
}

}  // namespace shmem
