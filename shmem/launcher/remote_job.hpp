// SPDX-License-Identifier: Apache-2.0
// A job on several nodes, as the oshrun sees it that the user has started.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "shmem/bootstrap/uid_server.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/job_runner.hpp"
#include "shmem/launcher/node_part.hpp"
#include "shmem/launcher/profile.hpp"

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

/// Its processes are an oshrun for each node, which starts the node's PEs (node_part.hpp). Is the server by which the
/// PEs find each other.
class RemoteJob final : public JobRunner {
 public:
  /// Starts nothing yet. An Error if the job cannot start on any node.
  static Result<std::unique_ptr<RemoteJob>> prepare(Options options);

 private:
  struct Node : Process {
    NodePes place;
    base::UniqueFd input;  // the lifeline of the node's oshrun
    NodeMark ready{kNodeReady};
    NodeMark pes{kNodePes, kNodePesEnd};
    std::string processes{};  // what belongs to that mark
    NodeMark profile{kNodeProfile};
    std::string counts{};  // what comes behind that mark
  };
  struct Parts {
    std::string self;    // this program's path, the same on all nodes
    std::string rsh;     // the path of the first word of options.rsh
    std::string folder;  // to run in
    std::vector<NodeVariable> variables;
    std::unique_ptr<UidServer> server;
  };

  RemoteJob(Tools tools, Parts parts);

  std::size_t processes() override { return nodes_.size(); }
  Process& process(std::size_t index) override { return nodes_[index]; }

  void start_processes() override;
  Result<void> start(std::size_t index);
  [[nodiscard]] ChildProgram program_for(const NodePes& place) const;
  Result<base::UniqueFd> give_input(const NodePes& place, base::UniqueFd& lifeline) const;

  void look() override { publish_pes(); }
  void forward(int signal) override { tell_nodes(static_cast<char>(signal)); }
  void exec_failed(const ExecFailure& failure) override;
  void process_ended(std::size_t index, int wait_status) override;
  void node_ended(const Node& node, int wait_status);
  void time_is_over() override;
  std::string progress(std::chrono::seconds passed) override;
  /// To debuggers, once all nodes have said where their PEs are.
  void publish_pes();
  void tell_nodes(char byte);

  std::chrono::milliseconds begin_stage(Ending ending, int status, const std::string& reason) override;
  int finish() override;
  void report_profile();
  /// "kiwi (PEs 2-3)"
  [[nodiscard]] static std::string name_of(const Node& node);

  Parts parts_;
  std::vector<Node> nodes_;
  bool is_published_ = false;  // see publish_pes()
};

}  // namespace shmem::launcher
