// SPDX-License-Identifier: Apache-2.0
// What the kernel tells in sysfs, and the device nodes. Tests give other folders: GBA_SYSFS, GBA_DEVFS.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tool {

/// Path below /sys, and below /dev.
std::string sys_path(const std::string& path);
std::string dev_path(const std::string& path);
/// Neither variable is set: what is looked at is this machine.
bool is_this_machine();

/// Names in a folder, sorted; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);
/// The first line of a file; nothing if it cannot be read.
std::optional<std::string> first_line(const std::string& file);
/// The last part of where a symbolic link leads; empty if there is none.
std::string link_name(const std::string& link);
bool exists(const std::string& path);
/// Two names of one file. (std::filesystem::equivalent knows no device nodes.)
bool is_same(const std::string& path, const std::string& other);

}  // namespace tool
