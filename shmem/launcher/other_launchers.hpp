// SPDX-License-Identifier: Apache-2.0
// Options of other launchers, Open MPI's above all: what they mean here, or that they mean nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shmem/launcher/node_list.hpp"

namespace CLI {
class App;
}

namespace shmem::launcher {

/// As on the command line, before the first program. Filled in by CLI11, which has checked each value.
struct OtherLaunchers {
  std::string bind_to;    // as --bind takes it; empty: not given
  std::string map_by;     // empty: not given
  int per_node = 0;       // 0: not given
  std::string hosts;      // as parse_hosts() takes them; empty: not given
  std::string host_file;  // empty: not given
  std::vector<NodeSlots> host_file_nodes{};
  bool oversubscribe = false;
  bool as_root = false;
  std::vector<std::string> mca;  // name, value, name, value ...
};

/// What such options begin with in the list that for_parser() keeps: words with one dash that CLI11 would read as
/// several options of one letter.
std::string with_two_dashes(const std::string& argument);
/// How many arguments after this one are its values.
int values_of_other_launchers(const std::string& argument);

/// `app` and `options` must live until the command line has been parsed.
void declare_other_launchers(CLI::App& app, OtherLaunchers& options);

/// The number of PEs that follows from -N, --map-by ppr:N:node, -H or --hostfile if -n is not given; 0: none of them is
/// given.
int pes_asked_for(const OtherLaunchers& options);
/// The nodes of a job of `pes` PEs; none without -H and --hostfile.
Result<std::vector<NodePes>> nodes_of(const OtherLaunchers& options, int pes);
/// The variables by which Open MPI, if the program uses it, gets its --mca parameters.
std::vector<std::pair<std::string, std::string>> variables_of(const OtherLaunchers& options);

}  // namespace shmem::launcher
