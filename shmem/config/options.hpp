// SPDX-License-Identifier: Apache-2.0
// The variables of libshmem: a table of names, defaults and help, and their values, which come from the environment or
// from a configuration file (config_file.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmem/config/barrier_choice.hpp"
#include "shmem/config/heap_placement.hpp"
#include "shmem/result.hpp"

namespace shmem {

enum class GbaUse { kAuto, kOff, kRequire };
enum class NetworkUse { kAny, kRdma };
/// How the PEs of a job find each other; kAuto: by this process's launcher.
enum class BootstrapKind { kAuto, kLocal, kUid, kPmix, kMpi };

/// The default limit of a step of a bootstrap. Long, because PEs may do much work before they call shmem_init.
constexpr std::chrono::seconds kBootstrapLimit{120};

constexpr std::size_t kLongestSwitchName = 63;

/// The values of all variables; immutable after reading.
struct Options {
  std::string config_file;
  std::size_t symmetric_size = std::size_t{1} << 30;
  bool symmetric_globals = true;
  std::string symmetric_globals_skip;  // libraries, as is_listed() reads them
  PlacementRequest placement;
  std::string barrier_algorithm = "auto";
  std::string barrier_tuning;     // a file, or "": the built-in table
  std::string collective_tuning;  // the same
  int barrier_radix = kMostRadix;
  int barrier_group = kGroup;
  std::chrono::milliseconds barrier_timeout{0};                          // 0: wait as long as the others live
  std::chrono::milliseconds barrier_warning = std::chrono::seconds{30};  // 0: none
  GbaUse gba = GbaUse::kAuto;
  int gba_min_pes = 2;
  std::string gba_switch;  // all nodes with "" are on one switch
  BootstrapKind bootstrap = BootstrapKind::kAuto;
  std::chrono::milliseconds bootstrap_timeout = kBootstrapLimit;
  std::string uid_session_id;
  std::string uid_sock_ifname;
  std::optional<int> uid_rank;
  std::optional<int> uid_size;
  std::string uid_secret;
  std::string mpi_plugin;
  std::string host_id;
  std::string exchange_dir;
  [[nodiscard]] const std::string& job_folder() const { return placement.folder; }  // SHMEM_JOB_DIR, or ""
  NetworkUse network_require = NetworkUse::kAny;
  std::chrono::milliseconds network_timeout{0};  // 0: wait as long as the others live
  bool progress_thread = true;
  std::string trace;  // a file, or ""
  std::optional<int> cycle_prof_pe;
  bool info = false;
  bool info_json = false;  // as JSON
  bool version = false;
  bool debug = false;
  bool backtrace = true;
};

/// One variable.
struct OptionSpec {
  const char* name = nullptr;      // SHMEM_...
  const char* old_name = nullptr;  // SMA_..., or nullptr; the new name wins
  const char* kind = nullptr;      // "size", "name", "seconds", ...
  const char* initial = nullptr;
  const char* help = nullptr;     // one line
  const char* details = nullptr;  // more sentences, or nullptr
  bool secret = false;            // its value is never shown
};
std::span<const OptionSpec> option_table();

inline constexpr const char* kFromDefault = "default";

/// The setting of a variable.
struct Setting {
  const OptionSpec* spec = nullptr;
  std::string value;                   // as written; "..." for a secret
  std::string source;                  // "default", "environment", the variable's old name, or FILE:LINE
  std::optional<std::string> problem;  // why read_options() refuses it
};

/// Looks up a variable, as getenv does.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

/// The values in configuration files, by the variables' names.
struct ConfigValue {
  std::string value;
  std::string source;  // FILE:LINE
};
using ConfigValues = std::map<std::string, ConfigValue, std::less<>>;

/// All variables, in the order of the table. The environment has precedence over `config`.
std::vector<Setting> read_settings(const Environment& environment, const ConfigValues& config = {});

/// A malformed value is an Error that names the variable, the value and the values that are allowed.
Result<Options> read_options(const Environment& environment, const ConfigValues& config = {});

}  // namespace shmem
