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

#include "shmem/barrier/port_agreement.hpp"
#include "shmem/bootstrap/same_node.hpp"
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
                   .announce = [this](const HeapCall& call) { check_heap_call(call); }}),
      checker_(job_.options.debug ? std::make_unique<Checker>(job_, heap_) : nullptr) {
  reach_ = {reinterpret_cast<std::uintptr_t>(job_.memory.heap(job_.me)), checker_ ? 0 : job_.memory.heap_size(),
            job_.memory.heap(0), &job_.metadata(0), job_.size};
}

void Context::check_heap_call(const HeapCall& call) const {
  if (!checker_) {
    return;
  }
  const std::string text = to_string(call);
  if (const auto problem =
          checker_->meet({kWorldTeam, teams_.find(kWorldTeam)->map()}, text, thread_rule(thread_level_))) {
    end_job_of(text, *problem);
  }
}

void Context::check_end() const {
  constexpr const char* kCall = "shmem_finalize";
  auto problem = checker_->held_locks();
  if (!problem) {
    problem = checker_->meet({kWorldTeam, teams_.find(kWorldTeam)->map()}, std::string(kCall) + "()",
                             thread_rule(thread_level_));
  }
  if (problem) {
    end_job_of(kCall, *problem);
  }
  if (const auto note = checker_->leaks(); note && job_.me == 0) {
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
  const auto processors = check_same_node(**bootstrap, node_identity());
  if (!processors) {
    return tl::make_unexpected(processors.error());
  }
  auto globals = SymmetricGlobals::plan(**bootstrap, find_globals(),
                                        options.symmetric_globals ? "" : "SHMEM_SYMMETRIC_GLOBALS=off");
  if (!globals) {
    return tl::make_unexpected(globals.error());
  }
  auto memory = NodeMemory::create(**bootstrap, options.symmetric_size, globals->size(), options.placement);
  if (!memory) {
    return tl::make_unexpected(memory.error());
  }
  const int me = (*bootstrap)->rank();
  const int size = (*bootstrap)->size();
  WaitPolicy policy = wait_policy(size, *processors);
  policy.alarm = (*bootstrap)->alarm();
  instance_ = std::make_unique<Context>(Key{},
                                        Job{std::move(options), *std::move(bootstrap), *std::move(memory), me, size,
                                            policy, *std::move(globals), *processors},
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
  if (auto ok = job_.globals.share(*job_.bootstrap, job_.memory); !ok) {
    return ok;
  }
  if (auto ports = settle_ports(job_, port_); ports) {
    ports_ = *ports;
  } else {
    return tl::make_unexpected(ports.error());
  }
  job_.core_state().globals.write(core_globals(job_));
  if (job_.options.cycle_prof_pe == job_.me) {
    profile_ = std::make_unique<Profile>();
    profile_->pe = job_.me;
  }
  if (auto ok = open_trace(); !ok) {
    return ok;
  }
  report();
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "of %d is process %d; its heap is at %p, %zu bytes", job_.size, ::getpid(),
                static_cast<void*>(job_.memory.heap(job_.me)), job_.memory.heap_size());
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
  auto file = TraceFile::open(job_.options.trace, id);
  if (!file) {
    return fail(file.error().code, "shmem: PE " + std::to_string(job_.me) + ": no trace: " + file.error().text);
  }
  trace_ = std::make_unique<Trace>(*std::move(file), job_.me, zero);
  job_.trace = trace_.get();
  return {};
}

void Context::open_gba_port() {
  if (job_.options.gba == GbaUse::kOff) {
    return;
  }
  const auto opened = try_port(job_, port_);
  no_gba_ = opened ? "" : opened.error().text;
  if (opened) {
    gba_device_info info{};
    gba_device_get_info(port_.well().get(), &info);
    // A device that is a process takes its turn on the processors like one PE more.
    gba_policy_ = job_.policy_for(job_.size + (info.is_process != 0 ? 1 : 0));
  }
}

GbaMember Context::gba_member(const Team& team, bool asked) {
  const Options& options = job_.options;
  GbaMember member{job_.me < ports_ ? &port_ : nullptr, no_gba_, asked, gba_policy_};
  member.needed = needs_gba();
  if (!asked) {
    member.unavailable =
        options.gba == GbaUse::kOff ? "SHMEM_GBA=off" : "SHMEM_BARRIER_ALGORITHM=" + options.barrier_algorithm;
  } else if (team.size() < options.gba_min_pes) {
    member.wanted = false;
    member.unavailable = "the team has fewer members than SHMEM_GBA_MIN_PES=" + std::to_string(options.gba_min_pes);
  }
  return member;
}

const TuningRow& Context::fitting_row(const Team& team) const {
  return tuning_.choose(team.size(), crowded());
}

BarrierChoice Context::choose(const Team& team, const std::string& algorithm) const {
  BarrierChoice choice{.tuning = {job_.options.barrier_radix, job_.options.barrier_group, crowded()}};
  if (const auto asked = find_algorithm(algorithm)) {
    choice.algorithm = *asked;
    return choice;
  }
  const TuningRow& row = fitting_row(team);
  choice.algorithm = row.algorithm;
  choice.tuning.radix = row.radix.value_or(choice.tuning.radix);
  choice.tuning.group = row.group.value_or(choice.tuning.group);
  return choice;
}

Result<void> Context::equip(Team& team) {
  const TeamMap& map = team.map();
  debug("is member " + std::to_string(team.me()) + " of team " + std::to_string(team.slot()) + ": " +
        std::to_string(map.size) + " PEs from " + std::to_string(map.start) + " in steps of " +
        std::to_string(map.stride));
  const Options& options = job_.options;
  const auto software = find_algorithm(options.barrier_algorithm);
  if (auto ok = choose_for(team, options.barrier_algorithm); !ok) {
    return ok;
  }
  const bool asked = !software && options.gba != GbaUse::kOff;
  if (auto ok = team.use_gba(gba_member(team, asked), ports_); !ok) {
    return ok;
  }
  if (needs_gba() && team.slot() == kWorldTeam && team.size() > 1 && std::string(team.algorithm()) != "gba") {
    return fail(std::errc::no_such_device,
                "shmem: PE " + std::to_string(job_.me) +
                    ": SHMEM_GBA=require, but the world team cannot use a GBA: " + team.gba_reason());
  }
  if (options.info && team.me() == 0) {
    report_team(team);
  }
  return {};
}

std::string Context::reason_of(const Team& team) const {
  if (job_.options.barrier_algorithm != "auto") {
    return "SHMEM_BARRIER_ALGORITHM";
  }
  return std::to_string(job_.size) + " PEs in all on " + std::to_string(job_.processors) + " processors: line " +
         std::to_string(fitting_row(team).line) + " of " + tuning_.name();
}

void Context::report_team(const Team& team) const {
  const std::string& no_gba = team.gba_reason();
  const std::string why = no_gba.empty() ? "" : " (" + reason_of(team) + "); not through a GBA: " + no_gba;
  log(LogLevel::kInfo, "shmem: team %d (%d PEs: %d, stride %d): barrier %s%s", team.slot(), team.size(),
      team.map().start, team.map().stride, team.algorithm(), why.c_str());
}

Result<void> Context::set_barrier(Team& team, const std::string& algorithm) {
  if (auto ok = team.ready(); !ok) {
    return ok;
  }
  if (find_algorithm(algorithm)) {
    auto ok = team.use_software(algorithm + " was asked for");
    return ok ? choose_for(team, algorithm) : ok;
  }
  if (algorithm != "gba" && algorithm != "auto") {
    return fail(std::errc::invalid_argument,
                "shmem: no barrier algorithm \"" + algorithm + "\" (auto, gba, or one that shmem_info lists)");
  }
  if (auto ok = team.use_software(""); !ok) {
    return ok;
  }
  if (auto ok = choose_for(team, algorithm); !ok) {
    return ok;
  }
  GbaMember member = gba_member(team, true);
  member.needed = member.needed || algorithm == "gba";
  if (auto ok = team.use_gba(member, ports_); !ok) {
    return ok;
  }
  if (algorithm == "gba" && team.size() > 1 && std::string(team.algorithm()) != "gba") {
    return fail(std::errc::no_such_device,
                "shmem: team " + std::to_string(team.slot()) + " cannot use a GBA: " + team.gba_reason());
  }
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
  if (job_.me != 0) {
    return;
  }
  if (job_.options.version || job_.options.info) {
    log(LogLevel::kInfo, "shmem: libshmem %s (OpenSHMEM 1.6 names), %d PEs, %zu MiB of heap each", kVersion, job_.size,
        job_.memory.heap_size() >> 20);
  }
  if (job_.options.info) {
    const std::string& why_not = job_.globals.why_not();
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
    log(LogLevel::kDebug, "shmem: PE %d: %s", job_.me, text.c_str());
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
  context.job_.bootstrap->leave();
  instance_.reset();
  return ok;
}

void Context::end_job_of(const std::string& call, const std::string& problem) const {
  if (problem.empty()) {
    std::fflush(nullptr);
    ::_exit(EXIT_FAILURE);  // the job has been ended
  }
  end_job(EXIT_FAILURE, "shmem: PE " + std::to_string(job_.me) + ": " + call + ": " + problem);
}

void Context::end_job(int status, const std::string& text) const {
  log(LogLevel::kFatal, "%s", text.c_str());
  if (trace_) {
    trace_->flush();
  }
  const int agreed = job_.bootstrap->abort(status, text);
  std::fflush(nullptr);
  ::_exit(agreed);
}

}  // namespace shmem
