// SPDX-License-Identifier: Apache-2.0
#include "shmem/context.hpp"
#include "shmem/log.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "shmem/barrier/port_agreement.hpp"
#include "shmem/bootstrap/node_bootstrap.hpp"
#include "shmem/memory/huge_pages.hpp"
#include "shmem/memory/ordering.hpp"
#include "shmem/team/peers.hpp"
#include "shmem/version.hpp"

namespace shmem {
namespace {

/// What the next context may serve its job on.
std::optional<UidListener>& kept_listener() {
  static std::optional<UidListener> listener;
  return listener;
}

/// What programs of before OpenSHMEM 1.2 rely on: returning from main ends the library. Only where nothing went wrong:
/// a PE that ends with another status does not wait for the others.
void finish_at_exit(int status, void* /*argument*/) {
  Context* context = Context::current();
  // A child that was not made by fork() has the PE's context, but is none.
  if (status != 0 || context == nullptr || !context->is_own_process()) {
    return;
  }
  context->debug("exits without shmem_finalize");
  quiet();
  if (auto ok = Context::stop(); !ok) {
    log(LogLevel::kFatal, "%s", ok.error().text.c_str());
    std::fflush(nullptr);
    ::_exit(EXIT_FAILURE);
  }
}

/// What the cores are told of global variables.
CoreGlobals core_globals(const Job& job) {
  CoreGlobals told{};
  told.stride = job.memory.globals_size();
  std::uint64_t first = reinterpret_cast<std::uintptr_t>(job.memory.globals(0));
  for (const GlobalRange& range : job.globals.shared_ranges()) {
    if (told.count == told.ranges.size()) {
      break;
    }
    told.ranges[told.count++] = {reinterpret_cast<std::uintptr_t>(range.begin), range.size, first};
    first += range.size;
    for (int pe = 0; pe < std::min<int>(job.size, CoreGlobals::kMostPes); ++pe) {
      const std::uint64_t has_them = job.globals.locate(range.begin, pe).address != nullptr ? 1 : 0;
      told.has_them[static_cast<std::size_t>(pe) / 64] |= has_them << (pe % 64);
    }
  }
  return told;
}

std::string because(const std::string& reason) {
  return reason.empty() ? "" : " (" + reason + ")";
}

}  // namespace

std::unique_ptr<Context> Context::instance_;
constinit Reach Context::reach_;

void Context::forget_in_child() {
  static std::atomic<Context*> parents{nullptr};  // it stays in sight of whoever looks for leaks
  parents.store(instance_.release(), std::memory_order_relaxed);
  reach_ = {};
}

void Context::register_fork_handler() {
  ::pthread_atfork(nullptr, nullptr, forget_in_child);
}

Context::Context(Key /*key*/, Job job, int thread_level)
    : job_(std::move(job)),
      thread_level_(thread_level),
      port_([pe = job_.me] { return open_gba(pe); }),
      teams_(job_, [this](Team& team) { return equip(team); }),
      heap_(job_, {.barrier = [this] { return teams_.find(kWorldTeam)->sync(); },
                   .count = [this] { return teams_.find(kWorldTeam)->stats().total(); },
                   .vote = [this](std::uint64_t digest) { return teams_.find(kWorldTeam)->vote(digest, true, 0); },
                   .announce = [this](const HeapCall& call) { check_heap_call(call); }}),
      checker_(job_.options.debug ? std::make_unique<Checker>(job_, heap_) : nullptr) {
  const bool look_closer = checker_ || job_.on_several_nodes();
  reach_ = {reinterpret_cast<std::uintptr_t>(job_.memory.heap(job_.me)), look_closer ? 0 : job_.memory.heap_size(),
            job_.memory.heap(0), &job_.metadata(0), job_.world_size()};
}

void Context::check_heap_call(const HeapCall& call) const {
  if (!checker_) {
    return;
  }
  const std::string text = to_string(call);
  if (const auto problem =
          checker_->meet({kWorldTeam, teams_.find(kWorldTeam)->map_here()}, text, thread_rule(thread_level_))) {
    end_job_of(text, *problem);
  }
}

void Context::check_end() const {
  constexpr const char* kCall = "shmem_finalize";
  auto problem = checker_->held_locks();
  if (!problem) {
    problem = checker_->meet({kWorldTeam, teams_.find(kWorldTeam)->map_here()}, std::string(kCall) + "()",
                             thread_rule(thread_level_));
  }
  if (problem) {
    end_job_of(kCall, *problem);
  }
  if (const auto note = checker_->leaks(); note && job_.world_me() == 0) {
    log(LogLevel::kInfo, "shmem: PE 0: %s: %s", kCall, note->c_str());
  }
}

Result<void> Context::start(int thread_level) {
  auto options = read_options(process_environment());
  if (!options) {
    return tl::make_unexpected(options.error());
  }
  auto request = bootstrap_request(*options);
  return start(thread_level, *std::move(options), std::move(request));
}

void Context::keep(UidListener listener) {
  kept_listener() = std::move(listener);
}

std::optional<UidListener> Context::take_listener(const UniqueId& id) {
  const bool same = kept_listener() && kept_listener()->id.secret == id.secret;
  return same ? std::exchange(kept_listener(), std::nullopt) : std::nullopt;
}

Result<void> Context::start(int thread_level, Options options, BootstrapRequest request) {
  static const int at_exit = ::on_exit(finish_at_exit, nullptr);  // once a process, however often the library starts
  static_cast<void>(at_exit);
  auto bootstrap = make_bootstrap(std::move(request));
  if (!bootstrap) {
    return tl::make_unexpected(bootstrap.error());
  }
  auto where = find_nodes(**bootstrap, node_identity(options.host_id));
  if (!where) {
    return tl::make_unexpected(where.error());
  }
  Nodes& nodes = where->nodes;
  auto globals = SymmetricGlobals::plan(**bootstrap, find_globals(),
                                        options.symmetric_globals ? "" : "SHMEM_SYMMETRIC_GLOBALS=off");
  if (!globals) {
    return tl::make_unexpected(globals.error());
  }
  if (nodes.several()) {
    globals->only_here(nodes.here);
    bootstrap = std::make_unique<NodeBootstrap>(*std::move(bootstrap), nodes);
  }
  auto memory = NodeMemory::create(**bootstrap, options.symmetric_size, globals->size(), options.placement);
  if (!memory) {
    return fail(memory.error().code, memory.error().text + (nodes.several() ? " (" + nodes.text() + ")" : ""));
  }
  const int me = (*bootstrap)->rank();
  const int size = (*bootstrap)->size();
  auto yield_watch = std::make_unique<YieldWatch>();
  WaitPolicy policy = policy_on(nodes, size, where->processors, yield_watch.get());
  policy.alarm = (*bootstrap)->alarm();
  instance_ = std::make_unique<Context>(
      Key{},
      Job{std::move(options), *std::move(bootstrap), *std::move(memory), me, size, policy, *std::move(globals),
          where->processors, nullptr, std::move(nodes), std::move(yield_watch)},
      thread_level);
  auto ok = instance_->open();
  if (!ok) {
    // The others may be waiting in shared memory for a PE that will not come.
    instance_->job_.bootstrap->abort(EXIT_FAILURE, ok.error().text);
    instance_.reset();
  }
  return ok;
}

Result<void> Context::open() {
  auto table = TuningTable::in_force(job_.options.barrier_tuning);
  if (!table) {
    return tl::make_unexpected(table.error());
  }
  tuning_ = *std::move(table);
  auto collectives = CollectiveTable::in_force(job_.options.collective_tuning);
  if (!collectives) {
    return tl::make_unexpected(collectives.error());
  }
  collective_tuning_ = *std::move(collectives);
  introduce(job_);
  job_.core_state().job.write({job_.me, job_.size, reinterpret_cast<std::uintptr_t>(job_.memory.heap(0)),
                               job_.memory.heap_size(), reinterpret_cast<std::uintptr_t>(job_.memory.board())});
  open_gba_port();
  // Also the barrier: everybody has mapped the memory and left his pid there.
  if (auto ok = job_.globals.share(job_.world_bootstrap(), job_.memory); !ok) {
    return ok;
  }
  if (auto ports = settle_ports(job_, port_); ports) {
    ports_ = *ports;
  } else {
    return tl::make_unexpected(ports.error());
  }
  if (auto ok = open_network(); !ok) {
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
  report();
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "of %d is process %d; its heap is at %p, %zu bytes", job_.world_size(),
                ::getpid(), static_cast<void*>(job_.memory.heap(job_.me)), job_.memory.heap_size());
  debug(text.data());
  return teams_.make_predefined();
}

Result<void> Context::open_trace() {
  if (job_.options.trace.empty()) {
    return {};
  }
  const PeMetadata& first = job_.metadata(0);
  const std::uint64_t zero = first.started.load(std::memory_order_relaxed);
  const std::string id = std::to_string(first.pid.load(std::memory_order_relaxed)) + "-" + std::to_string(zero);
  // Each node writes its own: what PEs append goes together within one only.
  auto file = TraceFile::open(
      job_.options.trace + (job_.nodes.mine > 0 ? "." + std::to_string(job_.nodes.mine) : std::string()), id);
  if (!file) {
    return fail(file.error().code, "shmem: PE " + std::to_string(job_.world_me()) + ": no trace: " + file.error().text);
  }
  trace_ = std::make_unique<Trace>(*std::move(file), job_.world_me(), zero);
  job_.trace = trace_.get();
  return {};
}

Stream& Context::default_stream() {
  const std::lock_guard lock(stream_mutex_);
  if (!stream_) {
    stream_ = std::make_unique<Stream>();
    started_stream_.store(stream_.get(), std::memory_order_release);
  }
  return *stream_;
}

bool Context::first_notice(const std::string& text) {
  const std::lock_guard lock(notices_mutex_);
  return notices_.insert(text).second;
}

Result<void> Context::on_cores(int count, const std::function<Result<void>(CoreGroup&)>& use) {
  const std::unique_lock lock(cores_in_use_, std::try_to_lock);
  if (!lock) {
    return fail(std::errc::device_or_resource_busy, "shmemx_launch: another thread of this PE runs a kernel");
  }
  if (!cores_ || cores_->count() != count) {
    // The cores of all PEs wait for each other.
    auto group = CoreGroup::create(count, job_.policy_for(job_.size * std::max(count, 1)));
    if (!group) {
      return tl::make_unexpected(group.error());
    }
    cores_ = *std::move(group);
  }
  return use(*cores_);
}

void Context::report() const {
  if (job_.world_me() != 0) {
    return;
  }
  if (job_.options.version || job_.options.info) {
    log(LogLevel::kInfo, "shmem: libshmem %s (OpenSHMEM 1.6 names), %d PEs, %zu MiB of heap each", kVersion,
        job_.world_size(), job_.memory.heap_size() >> 20);
  }
  if (job_.options.info) {
    const std::string& why_not = job_.globals.why_not();
    if (job_.on_several_nodes()) {
      log(LogLevel::kInfo, "shmem: %d nodes, by %s", job_.nodes.count, job_.network->describe().c_str());
    }
    log(LogLevel::kInfo, "shmem: global variables: %s%s", why_not.empty() ? "symmetric, " : "not symmetric: ",
        why_not.empty() ? job_.globals.describe().c_str() : why_not.c_str());
  }
  report_placement();
}

void Context::report_placement() const {
  const Placement& placement = job_.memory.placement();
  const std::string pages = to_string(placement.pages) + because(job_.memory.pages_reason());
  const HugePages wanted = job_.options.placement.pages;
  const bool missed = (wanted == HugePages::kHugetlb && placement.pages != PageKind::kHugetlb) ||
                      (wanted == HugePages::kThp && placement.pages != PageKind::kThp);
  if (job_.options.info) {
    log(LogLevel::kInfo, "shmem: pages of the heaps: %s; NUMA: %s%s", pages.c_str(), placement.numa.c_str(),
        because(placement.numa_reason).c_str());
  } else if (missed) {
    log(LogLevel::kWarn, "shmem: SHMEM_HUGEPAGES=%s cannot be had; pages of the heaps: %s",
        wanted == HugePages::kThp ? "thp" : "hugetlb", pages.c_str());
  }
}

bool Context::is_own_process() const {
  return job_.metadata(job_.me).pid.load(std::memory_order_relaxed) == ::getpid();
}

void Context::debug(const std::string& text) const {
  if (job_.options.debug) {
    log(LogLevel::kDebug, "shmem: PE %d: %s", job_.world_me(), text.c_str());
  }
}

Result<void> Context::stop() {
  Context& context = *instance_;
  context.debug("ends");
  context.stream_.reset();  // its work is done first
  if (context.checker_) {
    context.check_end();
  }
  Result<void> ok = context.teams_.find(kWorldTeam)->sync();
  if (ok) {
    ok = context.teams_.destroy_all();
  }
  if (ok && context.job_.network) {
    ok = context.part_from_other_nodes();
  }
  context.job_.bootstrap->leave();
  instance_.reset();
  return ok;
}

void Context::end_job_of(const std::string& call, const std::string& problem) const {
  if (problem.empty()) {
    std::fflush(nullptr);
    ::_exit(EXIT_FAILURE);  // the job has been ended
  }
  end_job(EXIT_FAILURE, "shmem: PE " + std::to_string(job_.world_me()) + ": " + call + ": " + problem);
}

std::string Context::reason_of_loss() const {
  if (!job_.network || !job_.network->lost()) {
    return "";
  }
  constexpr std::chrono::milliseconds kLongest{200};
  const auto end = Clock::now() + kLongest;
  auto reason = job_.bootstrap->aborted();
  while (!reason && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    reason = job_.bootstrap->aborted();
  }
  return reason && !reason->empty() ? "; the job was ended: " + *reason : "";
}

void Context::end_job(int status, const std::string& what) const {
  const bool has_reason = what.find("the job was ended") != std::string::npos;
  const std::string text = has_reason ? what : what + reason_of_loss();
  log(LogLevel::kFatal, "%s", text.c_str());
  if (trace_) {
    trace_->flush();
  }
  const int agreed = job_.bootstrap->abort(status, text);
  std::fflush(nullptr);
  ::_exit(agreed);
}

}  // namespace shmem
