// SPDX-License-Identifier: Apache-2.0
// oshrun's command line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shmem/launcher/binding.hpp"
#include "shmem/launcher/node_list.hpp"
#include "shmem/launcher/tool_command.hpp"

namespace shmem::launcher {

/// A program that some of the job's PEs run.
struct Program {
  int pes = 1;
  std::vector<std::pair<std::string, std::string>> exports;  // of -x
  std::string folder;                                        // to run in; empty: oshrun's
  std::vector<std::string> command;                          // with its arguments; never empty
};

/// The PEs of a job on several nodes that this oshrun starts, because another one has started it: node_part.hpp.
struct NodePart {
  int first = 0;
  int total = 0;
};

struct Options {
  std::string gba;  // "fake", "off", "require", a path; empty: as the environment says
  int ports = 0;    // of the fake device; 0: its default, enough for one per PE
  Bind bind = Bind::kNone;
  bool report_bindings = false;
  bool tag_output = false;
  bool direct_output = false;
  std::chrono::milliseconds grace{1000};
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<Debugger> debugger;
  std::string valgrind;  // the beginning of the names of its reports; empty: none
  std::string profile;   // the beginning of the names of the report's files; empty: nothing is counted
  int restarts = 0;      // of each PE that dies in a job that goes on without it
  std::vector<std::pair<std::string, std::string>> variables;  // of --mca; in the exports of each program, too
  std::vector<NodePes> nodes;                                  // of -H and --hostfile; empty: this machine
  std::vector<std::string> rsh;                                // the program that runs a command on another node
  std::optional<NodePart> part;
  bool hold = false;              // PEs wait in shmem_init until a debugger knows them
  std::vector<Program> programs;  // the first one's PEs come first; never empty

  [[nodiscard]] int pes() const;
  /// The number that the user sees of the PE that is `pe` here.
  [[nodiscard]] int number(int pe) const { return pe + (part ? part->first : 0); }
};

/// Why nothing runs: the user asked for help, or made an error.
struct Refusal {
  int status;  // 0: help, 2: wrong usage
  std::string text;
};

constexpr int kUsageStatus = 2;

base::Result<Options, Refusal> parse_options(int argc, const char* const* argv);

}  // namespace shmem::launcher
