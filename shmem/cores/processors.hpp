// SPDX-License-Identifier: Apache-2.0
// The processors that a process may use, and what they share, as the kernel tells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shmem/result.hpp"

namespace shmem {

/// Processors by their kernel numbers, ascending.
using Cpus = std::vector<int>;

/// "0-3,8": the kernel's format. Nothing if the text is malformed.
std::optional<Cpus> parse_cpus(const std::string& text);
/// One number, of a processor or of what processors belong to; nothing if the text is malformed.
std::optional<int> cpu_number(const std::string& text);
/// The list in the first line of a file; nothing without the file.
std::optional<Cpus> read_cpu_list(const std::string& file);

/// The processors that this process may use: its affinity mask, restricted by its control group.
Result<Cpus> own_cpus();
/// The same, in the room that `cpus` has, so that there is no allocation if it suffices. False with errno.
bool own_cpus(Cpus& cpus);
/// Restricts the calling thread, and what it starts, to these processors; at least one. False: refused, with errno.
bool run_on(const Cpus& cpus);
/// Allows the calling thread all processors that its control group does.
bool run_on_any();

}  // namespace shmem
