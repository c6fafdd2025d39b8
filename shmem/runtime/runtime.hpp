// SPDX-License-Identifier: Apache-2.0
// The running library: one object that owns everything between start and stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "shmem/barrier/trace.hpp"
#include "shmem/bootstrap/end_reports.hpp"
#include "shmem/checking/checker.hpp"
#include "shmem/cores/core_group.hpp"
#include "shmem/cores/profile.hpp"
#include "shmem/cores/stream.hpp"
#include "shmem/heap/symmetric_heap.hpp"
#include "shmem/layout/job.hpp"
#include "shmem/runtime/barrier_selector.hpp"
#include "shmem/runtime/ctx_table.hpp"
#include "shmem/runtime/job_network.hpp"
#include "shmem/runtime/survival.hpp"
#include "shmem/team/set_teams.hpp"
#include "shmem/team/team_table.hpp"

namespace shmem {

class MemoryRegistration;

/// Everything that is needed to find the memory of a PE, on one cache line. Before start() and after stop(): no PEs.
struct alignas(64) Reach {
  std::uintptr_t mine = 0;  // my heap
  /// Bytes of each heap that calls may address without further checks; the heaps follow each other. 0 if each address
  /// is checked or counted (SHMEM_DEBUG, SHMEM_INFO), or if PEs are on several nodes.
  std::size_t unchecked_heap = 0;
  std::byte* first = nullptr;      // PE 0's heap
  PeMetadata* metadata = nullptr;  // of PE 0, and so on
  int pes = 0;
  bool several_nodes = false;  // PEs are on several nodes: calls also progress and complete messages
};

/// SHMEM_THREAD_MULTIPLE.
constexpr int kThreadMultiple = 3;

/// Created by start(), ended by stop(), which leaves nothing behind. Several threads may use it at once; the
/// application ensures that collectives on one team do not overlap (OpenSHMEM 1.6, section 9.2).
class Runtime {
 public:
  /// Collective. Starts on all PEs, or all get an Error. With the settings of the environment, or with those given.
  static Result<void> start(int thread_level);
  static Result<void> start(int thread_level, Options options, BootstrapRequest request);
  /// Collective. Memory, teams, device and bootstrap are given back.
  static Result<void> stop();
  /// OpenSHMEM 1.6, section 9.1: the library may be started again while it runs, and ends with the last matching call
  /// that ends it. release() is true for that one.
  void retain(int thread_level) {
    ++starts_;
    thread_level_ = std::max<int>(thread_level_, thread_level);
    if (thread_level >= kThreadMultiple) {
      sets_.disable();
    }
  }
  bool release() { return --starts_ == 0; }
  /// False in a process that was forked from the PE.
  [[nodiscard]] bool is_own_process() const;
  /// The PE that forked this process, in which the library ran; -1 in all other processes.
  static int parent_pe();
  /// Whether this PE should print why start() has failed: under oshrun another one does if all have the same reason.
  static bool is_reporter() { return is_reporter_; }
  /// nullptr before start() and after stop(). At exit it stays, for other threads.
  static Runtime* current() { return current_; }
  /// Of the current runtime. Static, so that a call reads nothing else.
  static const Reach& reach() { return reach_; }

  /// Keeps the listener of the last unique id that this process has given out, until a job with that id takes it.
  static void keep(UidListener listener);
  static std::optional<UidListener> take_listener(const UniqueId& id);

  /// Only start() makes one.
  class Key {
    friend class Runtime;
    Key() = default;
  };
  Runtime(Key key, Job job, int thread_level);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  [[nodiscard]] const Job& job() const { return job_; }
  // PEs by their numbers in the world, which programs use.
  [[nodiscard]] int my_pe() const { return job_.world_me(); }
  [[nodiscard]] int n_pes() const { return job_.world_size(); }
  /// nullptr also if the PE is on another node.
  [[nodiscard]] void* translate(const void* mine, int pe) const {
    const int number = job_.nodes.number(pe);
    return number >= 0 ? job_.translate(mine, number) : nullptr;
  }
  /// The PE is on this node, and only copies by the kernel reach `mine` there.
  [[nodiscard]] bool is_copied(const void* mine, int pe) const {
    const int number = job_.nodes.number(pe);
    const auto found = number >= 0 ? job_.registered->find(mine) : std::nullopt;
    return found && job_.registered->copied(*found, number) != nullptr;
  }
  /// The PE is on another node, where `mine` is symmetric.
  [[nodiscard]] bool is_symmetric_remote(const void* mine, int pe) const {
    return job_.nodes.number(pe) < 0 && job_.locate_remote(mine, 1, pe);
  }
  /// SHMEM_THREAD_*: the highest level that the program has requested.
  [[nodiscard]] int thread_level() const { return thread_level_; }

  /// The network to PEs on other nodes.
  [[nodiscard]] const JobNetwork& network() const { return network_; }
  BarrierSelector& barriers() { return barriers_; }

  /// nullptr without SHMEM_DEBUG.
  [[nodiscard]] Checker* checker() const { return checker_.get(); }
  /// nullptr without SHMEM_INFO.
  [[nodiscard]] CallCounts* counts() const { return counts_; }
  /// Calls are checked or counted.
  [[nodiscard]] bool watches_calls() const { return watches_calls_; }

  /// Counts calls that test without waiting. Returns the number of earlier calls.
  [[nodiscard]] unsigned count_look() const { return looks_.fetch_add(1, std::memory_order_relaxed); }

  SymmetricHeap& heap() { return heap_; }
  MemoryRegistration& registration() { return *registration_; }
  TeamTable& teams() { return teams_; }
  SetTeams& sets() { return sets_; }
  CtxTable& ctxs() { return ctxs_; }
  [[nodiscard]] const CtxTable& ctxs() const { return ctxs_; }

  /// Runs a kernel on `count` cores, which are kept for the next kernel. `use` gets the group. An Error, without an
  /// effect, while another thread runs a kernel.
  Result<void> on_cores(int count, const std::function<Result<void>(CoreGroup&)>& use);

  /// The default stream. Throws std::system_error if its thread cannot be created.
  Stream& default_stream();
  /// nullptr until default_stream() has been called.
  // Acquire: pairs with default_stream() of another thread.
  [[nodiscard]] Stream* started_default_stream() const { return started_stream_.load(std::memory_order_acquire); }

  Survival& survival() { return survival_; }
  /// The job goes on when a PE dies.
  [[nodiscard]] bool survives() const { return survival_.survives(); }

  /// True for the first call with this text, for messages that are printed once. Thread-safe.
  bool first_notice(const std::string& text);

  /// SHMEM_CYCLE_PROF_PE: nullptr on other PEs.
  [[nodiscard]] Profile* profile() const { return profile_.get(); }

  /// With SHMEM_DEBUG: logs one line with this PE's number.
  void debug(const std::string& text) const;
  /// For calls that cannot return an error: ends the whole job with a message, or, if errors return, throws
  /// CallFailure and leaves the job alone.
  [[noreturn]] void end_job(const Error& error) const;
  /// The message of a call that returns this error. The loss of another node may be a consequence of the job's end.
  void log_failed_call(const Error& error) const;
  /// Ends the whole job as a program ends normally: this process runs its exit handlers. The program asks for that, so
  /// it does not matter whether errors return.
  [[noreturn]] void exit_job(int status, const std::string& what);
  /// For programs that ask: false also once exit() has finalized the library.
  static bool is_initialized() { return current_ != nullptr && !has_left_.load(std::memory_order_relaxed); }
  /// The process exits, or exit_job() runs: nothing ends the library any more.
  static bool is_exiting() { return is_exiting_.load(std::memory_order_relaxed); }
  /// exit() runs, in any thread: this PE leaves the job if it ends with status 0, else the job ends.
  static void end_at_exit(int status);
  /// end_job() for a problem that the checker has found.
  [[noreturn]] void end_job_of(const std::string& call, const std::string& problem) const;

 private:
  void check_heap_call(const HeapCall& call) const;
  void check_end() const;
  /// Collective: finds the other PEs, and makes the memory of those of this node.
  static Result<Job> find_job(Options options, BootstrapRequest request);
  /// Collective: what follows, until teams can be used.
  Result<void> open();
  /// Its first part: shows this PE to the others of its node, until all have seen each other.
  Result<void> meet();
  /// Collective: all of stop() but the destruction.
  Result<void> leave_job();
  void leave_by_exit(int status);
  static void destroy();
  Result<void> open_trace();
  void log_end(int status, const std::string& text) const;
  /// The last words of a PE that has only waited for another one.
  void log_wait(int status, const std::string& text, EndKind kind) const;
  /// What PE 0 prints before its teams tell how they synchronise, and after that.
  void report_start() const;
  void report_rest() const;
  void report_calls() const;
  void report_json() const;
  void report_variables() const;
  void report_placement() const;
  void report_processors() const;
  void report_sharing() const;

  /// A child made by fork() is not a PE. Its copy of the runtime belongs to the parent: it neither uses nor ends it.
  static void forget_in_child();
  [[gnu::constructor]] static void register_handlers();
  static void finish_at_exit();

  static Runtime* current_;
  static std::atomic<Runtime*> owned_;  // destroyed by the thread that takes it; nullptr at exit and in a forked child
  static Reach reach_;
  static bool is_reporter_;
  static std::atomic<bool> is_exiting_;
  static std::atomic<bool> has_left_;

  Job job_;
  JobNetwork network_;
  std::atomic<int> thread_level_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Profile> profile_;
  BarrierSelector barriers_;
  TeamTable teams_;
  SetTeams sets_;
  CtxTable ctxs_;
  SymmetricHeap heap_;
  Survival survival_;
  std::unique_ptr<MemoryRegistration> registration_;
  std::unique_ptr<Checker> checker_;
  CallCounts* const counts_;
  const bool watches_calls_;
  std::mutex cores_in_use_;
  std::unique_ptr<CoreGroup> cores_;
  std::mutex stream_mutex_;  // guards creating the stream
  std::atomic<Stream*> started_stream_{nullptr};
  mutable std::atomic<unsigned> looks_{0};
  std::unique_ptr<Stream> stream_;  // declared after the teams, because its work uses them
  int starts_ = 1;
  std::mutex notices_mutex_;
  std::set<std::string> notices_;
};

}  // namespace shmem
