// SPDX-License-Identifier: Apache-2.0
// A node's part of a job on several nodes: what the oshrun that the user started tells the one that it starts on each
// node. The command line says what to run; the environment, which other users must not see, comes over standard input,
// which then stays open: its end is the end of the job, and a byte is the number of a signal for the PEs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "shmem/launcher/mpir.hpp"
#include "shmem/launcher/node_list.hpp"
#include "shmem/launcher/options.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// What the oshrun on a node prints first, on standard output: a login may have printed something before.
inline constexpr std::string_view kNodeReady = "\x01oshrun-node\n";
/// Then the processes of its PEs, for debuggers: entries "PID:PROGRAM" that end with a zero, and an empty one.
inline constexpr std::string_view kNodePes = "\x01oshrun-pes\n";
inline constexpr std::string_view kNodePesEnd("\0\0", 2);
/// In the place of a signal's number: the time of the job (--timeout) is over.
inline constexpr char kTimeIsOver = 'T';
/// In the place of a signal's number: PEs that are held may go on.
inline constexpr char kRelease = 'R';

/// A variable for one program of the part, or for the whole part.
struct NodeVariable {
  int program = -1;   // -1: all
  std::string entry;  // NAME=VALUE
};

/// The arguments of the oshrun on that node, without its name. Folders that are not absolute are in `folder`.
std::vector<std::string> part_arguments(const Options& job, const NodePes& node, const std::string& folder);
/// The variables of the programs of that node, from -x.
std::vector<NodeVariable> part_variables(const Options& job, const NodePes& node);

/// This process's environment, without what belongs to this login, this node or a launcher of oshrun, and without what
/// by its name is a secret.
std::vector<std::string> environment_for_nodes();

/// The bytes for the standard input of that oshrun.
std::string encode(const std::vector<NodeVariable>& variables);
/// Reads them from `fd`, up to their end only. An Error if the input ends before.
Result<std::vector<NodeVariable>> read_variables(int fd);

/// What the oshrun on a node says of its PEs, from kNodePes on.
std::string encode(const std::vector<MpirProcess>& pes);
/// Reads what follows kNodePes. The PEs are those of `host`.
std::vector<MpirProcess> decode_pes(std::string_view bytes, const std::string& host);

/// Writes to the oshrun that has started this one, if it is still there.
void write_to_starter(std::string_view bytes);

/// A command line for the shell on another node.
std::string quoted(const std::vector<std::string>& words);

}  // namespace shmem::launcher
