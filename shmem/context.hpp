// SPDX-License-Identifier: Apache-2.0
// The one object that a running library is.
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

#include "shmem/barrier/gba_port.hpp"
#include "shmem/barrier/trace.hpp"
#include "shmem/barrier/tuning_table.hpp"
#include "shmem/checking/checker.hpp"
#include "shmem/cores/core_group.hpp"
#include "shmem/cores/profile.hpp"
#include "shmem/cores/stream.hpp"
#include "shmem/job.hpp"
#include "shmem/memory/symmetric_heap.hpp"
#include "shmem/net/progress_thread.hpp"
#include "shmem/team/ctx_table.hpp"
#include "shmem/team/team_table.hpp"

namespace shmem {

/// What finding the memory of a PE takes, on one cache line. Before and after the life of a context: no PEs.
struct alignas(64) Reach {
  std::uintptr_t mine = 0;  // my heap
  std::size_t heap_size =
      0;  // the others' follow each other; 0 with SHMEM_DEBUG, and on several nodes: each is looked at
  std::byte* first = nullptr;      // PE 0's
  PeMetadata* metadata = nullptr;  // of PE 0, and so on
  int pes = 0;
};

/// Made by start(), ended by stop(); nothing is left over between the two. Several threads may use it at once, but that
/// collectives on one team do not overlap is the application's to see to (OpenSHMEM 1.6, section 9.2).
class Context {
 public:
  /// Collective. All PEs get a context or all get an Error. By what the environment says, or as it is told.
  static Result<void> start(int thread_level);
  static Result<void> start(int thread_level, Options options, BootstrapRequest request);
  /// Collective. Memory, teams, device and bootstrap are given back.
  static Result<void> stop();
  /// OpenSHMEM 1.6, section 9.1: the library may be started again while it runs, and ends with the last of as many
  /// calls that end it. unnest() is true for the last one.
  void nest(int thread_level) {
    ++starts_;
    thread_level_ = std::max<int>(thread_level_, thread_level);
  }
  bool unnest() { return --starts_ == 0; }
  /// False in a process that was forked from the PE.
  [[nodiscard]] bool is_own_process() const;
  /// nullptr before start() and after stop().
  static Context* current() { return instance_.get(); }
  /// Of the current one; where it stands does not depend on it, so that a call needs to look at nothing else.
  static const Reach& reach() { return reach_; }

  /// Of the unique id that this process has given out last, until a job with that id takes it.
  static void keep(UidListener listener);
  static std::optional<UidListener> take_listener(const UniqueId& id);

  /// Only start() makes one.
  class Key {
    friend class Context;
    Key() = default;
  };
  Context(Key key, Job job, int thread_level);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    reach_ = {};
    forsake_network();
  }

  [[nodiscard]] const Job& job() const { return job_; }
  // By their numbers in the world, as programs know them.
  [[nodiscard]] int my_pe() const { return job_.world_me(); }
  [[nodiscard]] int n_pes() const { return job_.world_size(); }
  /// nullptr also if the PE is on another node.
  [[nodiscard]] void* translate(const void* mine, int pe) const {
    const int number = job_.nodes.number(pe);
    return number >= 0 ? job_.translate(mine, number) : nullptr;
  }
  /// The PE is on another node and has the same there.
  [[nodiscard]] bool is_symmetric_far(const void* mine, int pe) const {
    return job_.nodes.number(pe) < 0 && job_.locate_far(mine, 1, pe);
  }
  /// SHMEM_THREAD_*: the highest that the program has asked for.
  [[nodiscard]] int thread_level() const { return thread_level_; }

  /// By which the PEs of an active set meet that are on several nodes, for calls with this pSync. Thread-safe.
  [[nodiscard]] LeaderGroup& group_of(const TeamMap& set, const long* psync) const;

  /// nullptr without SHMEM_DEBUG.
  [[nodiscard]] Checker* checker() const { return checker_.get(); }

  /// Counts calls that look for something without waiting. The number of earlier ones.
  [[nodiscard]] unsigned count_look() const { return looks_.fetch_add(1, std::memory_order_relaxed); }

  SymmetricHeap& heap() { return heap_; }
  TeamTable& teams() { return teams_; }
  CtxTable& ctxs() { return ctxs_; }
  [[nodiscard]] const CtxTable& ctxs() const { return ctxs_; }

  /// Runs a kernel on so many cores; they are kept for the next one. `use` is given the group. An Error, and nothing
  /// is done, while another thread runs one.
  Result<void> on_cores(int count, const std::function<Result<void>(CoreGroup&)>& use);

  /// The stream that programs mean by none. Throws std::system_error if there is no thread for it.
  Stream& default_stream();
  /// nullptr until default_stream() has been called.
  // Acquire: pairs with default_stream() of another thread.
  [[nodiscard]] Stream* started_default_stream() const { return started_stream_.load(std::memory_order_acquire); }

  /// Collective over the team: "auto", "gba" or a software algorithm from now on. An Error if that cannot be had.
  Result<void> set_barrier(Team& team, const std::string& algorithm);

  /// True for the first call with this text: what is to be said once. Thread-safe.
  bool first_notice(const std::string& text);

  /// SHMEM_CYCLE_PROF_PE: nullptr on other PEs.
  [[nodiscard]] Profile* profile() const { return profile_.get(); }

  /// With SHMEM_DEBUG: one line on standard error that says who this is.
  void debug(const std::string& text) const;
  /// Ends the whole job with a message. For calls that have no way to report.
  [[noreturn]] void end_job(int status, const std::string& what) const;
  /// The same for what the checker has found.
  [[noreturn]] void end_job_of(const std::string& call, const std::string& problem) const;

 private:
  void check_heap_call(const HeapCall& call) const;
  void check_end() const;
  Result<void> open();
  /// Collective: to the PEs on other nodes. After global variables have been moved, which UCX would be in the way of.
  Result<void> open_network();
  Result<void> start_progress_thread();
  Result<void> part_from_other_nodes();
  /// If that has not been done: UCX 1.13 ends a process that closes connections while they are made. What is left of
  /// them then ends with the process.
  void forsake_network();
  Result<void> open_trace();
  void open_gba_port();
  Result<void> equip(Team& team);
  /// By `algorithm`, the name of one; or by the table if it is "auto" or "gba".
  [[nodiscard]] BarrierChoice choose(const Team& team, const std::string& algorithm) const;
  /// Collective over the team.
  Result<void> choose_for(Team& team, const std::string& algorithm) const {
    return team.agree_on_algorithm(choose(team, algorithm), collective_tuning_.choose(team.size(), crowded()));
  }
  [[nodiscard]] const TuningRow& fitting_row(const Team& team) const;
  [[nodiscard]] bool crowded() const { return job_.size > job_.processors || job_.nodes.crowd(job_.size); }
  [[nodiscard]] GbaMember gba_member(const Team& team, bool asked);
  /// The user wants the device in any case.
  [[nodiscard]] bool needs_gba() const {
    return job_.options.gba == GbaUse::kRequire || job_.options.barrier_algorithm == "gba";
  }
  void report() const;
  void report_placement() const;
  void report_team(const Team& team) const;
  [[nodiscard]] std::string reason_of(const Team& team) const;
  /// A PE on another node may be lost because it has ended the job: its reason, to be added to the text of this one's.
  [[nodiscard]] std::string reason_of_loss() const;

  /// A child made by fork() is no PE. What it has of the context is the parent's: it neither uses nor ends it.
  static void forget_in_child();
  [[gnu::constructor]] static void register_fork_handler();

  static std::unique_ptr<Context> instance_;
  static Reach reach_;

  Job job_;
  std::atomic<int> thread_level_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Profile> profile_;
  GbaPort port_;
  std::string no_gba_ = "SHMEM_GBA=off";  // why this PE could not open one
  int ports_ = 0;                         // that the PEs have: 0..ports_ - 1 have one each
  WaitPolicy gba_policy_{};
  TuningTable tuning_ = TuningTable::built_in();
  CollectiveTable collective_tuning_ = CollectiveTable::built_in();
  TeamTable teams_;
  CtxTable ctxs_;
  SymmetricHeap heap_;
  std::unique_ptr<Checker> checker_;
  std::mutex cores_in_use_;
  std::unique_ptr<CoreGroup> cores_;
  std::mutex stream_mutex_;  // of making it
  std::atomic<Stream*> started_stream_{nullptr};
  bool parted_ = false;  // from the other nodes, in good order
  mutable std::atomic<unsigned> looks_{0};
  std::unique_ptr<Stream> stream_;  // after the teams: its work uses them
  int starts_ = 1;
  struct SetOfPes {
    int start, stride, size;
    std::uintptr_t psync;
    auto operator<=>(const SetOfPes&) const = default;
  };
  mutable std::mutex groups_mutex_;
  mutable std::map<SetOfPes, LeaderGroup> groups_;
  std::mutex notices_mutex_;
  std::set<std::string> notices_;
  std::unique_ptr<ProgressThread> progress_;  // SHMEM_PROGRESS_THREAD, and at the end; before the network's
};

}  // namespace shmem
