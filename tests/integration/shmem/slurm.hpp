// SPDX-License-Identifier: Apache-2.0
// A Slurm installation that a test runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/hosts.hpp"
#include "tests/support/process.hpp"

namespace test_support {

/// munged, slurmctld and slurmd for one node of 16 processors, on free ports of 127.0.0.1, or for as many such nodes as
/// there are hosts. All their files are in a folder; the object removes the folder and ends the jobs when it is
/// destroyed. Needs root.
class Slurm {
 public:
  /// Why this machine cannot run it, or nothing.
  static std::optional<std::string> missing();

  /// `hosts`, if any, must outlive it. `task_prolog`: a file that slurmd runs before each task, only without hosts.
  explicit Slurm(const Hosts* hosts = nullptr, std::string task_prolog = {});
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;
  ~Slurm();

  /// False if it did not start; log() then says why.
  [[nodiscard]] bool is_ready() const { return ready_; }
  [[nodiscard]] std::string log() const;

  /// Runs srun --mpi=pmix -n TASKS COMMAND on the first host; each node gets the same number of tasks.
  [[nodiscard]] std::unique_ptr<Process> srun(int tasks, const std::vector<std::string>& command,
                                              const std::vector<std::string>& environment = {}) const;

 private:
  void configure() const;
  [[nodiscard]] std::string variable() const { return "SLURM_CONF=" + dir_.file("slurm.conf"); }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> nodes() const;  // names and addresses
  [[nodiscard]] std::unique_ptr<Process> on_node(int node, const std::vector<std::string>& command,
                                                 std::vector<std::string> environment = {}) const;

  const Hosts* hosts_;
  std::string task_prolog_;
  TempDir dir_;
  std::vector<std::unique_ptr<Process>> daemons_;
  bool ready_ = false;
};

}  // namespace test_support
