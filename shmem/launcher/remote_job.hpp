// SPDX-License-Identifier: Apache-2.0
// A job on several nodes, as the oshrun sees it that the user has started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shmem/bootstrap/uid_server.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/node_part.hpp"
#include "shmem/launcher/options.hpp"
#include "shmem/launcher/output.hpp"
#include "shmem/launcher/profile.hpp"
#include "shmem/launcher/signals.hpp"
#include "shmem/launcher/support_processes.hpp"

namespace shmem::launcher {

/// Finds a mark in what comes from a node: kNodeReady, kNodePes or kNodeProfile. Used by one thread.
class NodeMark {
 public:
  /// `end` is the end of what belongs to the mark; empty: it has no end.
  explicit NodeMark(std::string_view mark = kNodeReady, std::string_view end = {}) : mark_(mark), end_(end) {}
  /// Takes bytes; returns those that do not belong to the mark. Those behind it, up to its end, are added to `behind`
  /// instead if that is given: it is always the same string.
  std::string feed(std::string_view bytes, std::string* behind = nullptr);
  [[nodiscard]] bool found() const { return found_; }
  /// The end has been found.
  [[nodiscard]] bool is_complete() const { return is_complete_; }

 private:
  std::string take_behind(std::string_view bytes, std::string* behind);

  std::string_view mark_;
  std::string_view end_;
  std::string waiting_;  // may be the beginning of the mark
  bool found_ = false;
  bool is_complete_ = false;
};

/// Starts an oshrun on each node, which starts the node's PEs (node_part.hpp), and ends all of them when one fails. Is
/// the server by which the PEs find each other. Used by one thread.
class RemoteJob {
 public:
  /// Starts nothing yet. An Error if the job cannot start on any node.
  static Result<std::unique_ptr<RemoteJob>> prepare(Options options);
  RemoteJob(const RemoteJob&) = delete;
  RemoteJob& operator=(const RemoteJob&) = delete;
  ~RemoteJob() = default;

  /// Runs until the last node has ended. Returns the job's exit status.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Node {
    NodePes place;
    pid_t pid = -1;
    bool running = false;
    base::UniqueFd input;  // the lifeline of the node's oshrun
    NodeMark ready{kNodeReady};
    NodeMark pes{kNodePes, kNodePesEnd};
    std::string processes{};  // what belongs to that mark
    NodeMark profile{kNodeProfile};
    std::string counts{};  // what comes behind that mark
  };
  /// The stage of an early end. kTold: PEs end by themselves. kTerminated: the nodes' oshruns end them.
  enum class Ending { kNo, kTold, kTerminated, kKilled };
  struct Parts {
    Options options;
    std::string self;    // this program's path, the same on all nodes
    std::string rsh;     // the path of the first word of options.rsh
    std::string folder;  // to run in
    std::vector<NodeVariable> variables;
    std::unique_ptr<UidServer> server;
    Signals signals;
    Guard guard;
    ExecReports reports;
    Output output;
  };

  explicit RemoteJob(Parts parts);

  void start_nodes();
  Result<void> start(std::size_t index);
  [[nodiscard]] ChildProgram program_for(const NodePes& place) const;
  Result<base::UniqueFd> give_input(const NodePes& place, base::UniqueFd& lifeline) const;

  void wait_for_something();
  void read_signals();
  void read_exec_failures();
  void reap();
  void node_ended(const Node& node, int wait_status);
  void look_at_time();
  void show_progress();
  /// To debuggers, once all nodes have said where their PEs are.
  void publish_pes();
  void tell_nodes(char byte);

  void end(int status, Ending ending);
  void advance_ending();
  void finish_output();
  /// Passes everything on that has come; false if a signal ended that.
  bool drain_output();
  void report_profile();
  [[nodiscard]] bool any_running() const;
  /// "kiwi (PEs 2-3)"
  [[nodiscard]] static std::string name_of(const Node& node);
  void say(const std::string& text) { parts_.output.say(text); }

  Parts parts_;
  std::vector<Node> nodes_;
  std::optional<int> status_;
  Ending ending_ = Ending::kNo;
  Clock::time_point next_step_{};      // of the end
  Clock::time_point next_progress_{};  // when to say which nodes have not started
  Clock::time_point start_{};
  std::optional<Clock::time_point> timeout_;  // of --timeout
  bool is_published_ = false;                 // see publish_pes()
};

}  // namespace shmem::launcher
