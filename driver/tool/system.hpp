// SPDX-License-Identifier: Apache-2.0
// The kernel's view of this machine and process: sysfs, device nodes, eventfds. Tests set other roots by GBA_SYSFS and
// GBA_DEVFS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/folder.hpp"

namespace tool {

/// Path below /sys, and below /dev.
std::string sys_path(const std::string& path);
std::string dev_path(const std::string& path);
/// Neither variable is set: the calls read this machine.
bool is_this_machine();

using base::names_in;
/// The first line of a file; nothing if it cannot be read.
std::optional<std::string> first_line(const std::string& file);
/// The last part of a symbolic link's target; empty if there is no link.
std::string link_name(const std::string& link);
bool exists(const std::string& path);
/// Two names of one file. (std::filesystem::equivalent knows no device nodes.)
bool is_same(const std::string& path, const std::string& other);

std::vector<int> open_eventfds();
/// The first that is not one of `before`; -1 if there is none.
int new_eventfd(const std::vector<int>& before);

/// Consumes the events so far. REQUIRES: the eventfd is non-blocking.
void drain(int eventfd);
/// True when an event comes; false if none comes within `limit_ns`.
bool comes(int eventfd, std::uint64_t limit_ns);

}  // namespace tool
