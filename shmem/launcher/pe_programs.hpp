// SPDX-License-Identifier: Apache-2.0
// What each PE is started as.
#pragma once

#include <string>
#include <vector>

#include "shmem/launcher/binding.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/environment.hpp"
#include "shmem/launcher/options.hpp"

namespace shmem::launcher {

/// The programs of a job, PE by PE. What is given to the constructor is copied or outlives the object. Constant.
class PePrograms {
 public:
  /// What all PEs have alike.
  struct Common {
    pid_t group;
    int job_memory;          // its descriptor
    std::string device;      // for GBA_DEVICE, of the job's own device; empty: none
    bool lines_to_terminal;  // their standard output passes through us to a terminal
    bool error_to_terminal;  // their standard error does
    std::optional<rlimit> open_files;
  };

  /// `files`: where the options' programs were found.
  PePrograms(const Options& options, std::vector<std::string> files, const Binding& binding, Common common);

  /// Without descriptors for standard input, output and error.
  [[nodiscard]] ChildProgram of(int pe) const;
  /// Where the program of `pe` was found, and where it is to run: for messages.
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
