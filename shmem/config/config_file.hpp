// SPDX-License-Identifier: Apache-2.0
// Configuration files: values of the variables in options.hpp that the environment does not set.
//
//   # a comment, also after a value
//   SHMEM_SYMMETRIC_SIZE = 4G
//
// /etc/libshmem.conf is the administrator's, ~/.config/libshmem.conf ($XDG_CONFIG_HOME) the user's, which has
// precedence. SHMEM_CONFIG_FILE names another file in the place of both, or none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shmem/config/options.hpp"
#include "shmem/result.hpp"

namespace shmem {

inline constexpr const char* kConfigFileVariable = "SHMEM_CONFIG_FILE";
inline constexpr const char* kSystemConfigFile = "/etc/libshmem.conf";

struct ConfigFile {
  std::string path;
  bool required = false;  // SHMEM_CONFIG_FILE names it
};

/// The files to read, that of least precedence first. A process that runs with more rights than its user reads no file
/// that the user names, and none in a folder of the user.
std::vector<ConfigFile> config_files(const Environment& environment, bool more_rights);

/// Adds the values in `text` to `values`, in place of earlier ones. An Error names `path`, the line and the name.
Result<void> parse_config(const std::string& path, const std::string& text, ConfigValues& values);

/// Whether a file was read; false: it does not exist and need not.
Result<bool> read_config_file(const ConfigFile& file, ConfigValues& values);

/// The values in the files of this process.
Result<ConfigValues> process_config();
/// The options of this process, by its environment and its files.
Result<Options> process_options();

/// True if the program of this process gave it more rights than its user has: set-user-ID, capabilities.
bool has_more_rights();

}  // namespace shmem
