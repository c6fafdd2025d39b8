// SPDX-License-Identifier: Apache-2.0
// The command line and environment of each PE.
#pragma once

#include <string>
#include <vector>

#include "shmem/launcher/binding.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/options.hpp"
#include "shmem/launcher/profile.hpp"

namespace shmem::launcher {

/// The programs of a job by PE. The constructor's arguments are copied or outlive the object. Constant.
class PePrograms {
 public:
  /// Common to all PEs.
  struct Common {
    pid_t group;
    int job_memory;          // its descriptor
    int end_reports;         // the same
    std::string device;      // for GBA_DEVICE: the job's own device; empty: none
    bool lines_to_terminal;  // standard output passes through oshrun to a terminal
    bool error_to_terminal;  // the same for standard error
    std::optional<rlimit> open_files;
    const Profiler* profiler = nullptr;  // null: nothing is counted
    ToolCommand tool{};
  };

  /// `files`: the paths of the options' programs.
  PePrograms(const Options& options, std::vector<std::string> files, const Binding& binding, Common common);

  /// Without descriptors for standard input, output and error.
  [[nodiscard]] ChildProgram of(int pe) const;
  /// The path of `pe`'s program and the folder it runs in: for messages.
  [[nodiscard]] const std::string& file_of(int pe) const { return files_[index_of(pe)]; }
  [[nodiscard]] const std::string& folder_of(int pe) const { return options_.programs[index_of(pe)].folder; }

 private:
  [[nodiscard]] std::size_t index_of(int pe) const;

  const Options& options_;
  std::vector<std::string> files_;
  const Binding& binding_;
  Common common_;
  int pes_;
  std::vector<Environment> environments_;  // by program
};

}  // namespace shmem::launcher
