// SPDX-License-Identifier: Apache-2.0
// How another process looks at a device that one process has open: it connects to a Unix socket of that process, which
// sends a memfd with a StatusReport and the groups in use, and closes the connection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gba/gba.h"

namespace gba {

constexpr std::uint64_t kStatusMagic = 0x3154415453414247;  // "GBASTAT1"

/// Followed by as many gba_group_status.
struct StatusReport {
  std::uint64_t magic = kStatusMagic;
  std::uint32_t size = sizeof(StatusReport);
  std::uint32_t group_size = sizeof(gba_group_status);
  gba_device_info info{};
  gba_device_counters counters{};
  std::int32_t condition = 0;  // -errno of gba_device_check
  std::uint32_t groups = 0;
  std::uint64_t group_limit = 0;  // 0: the device has none
  std::uint64_t groups_held = 0;
  char condition_text[512] = {};
};

/// Equal for all names of one device. Two paths that lead to the same file are the same vfio-user server.
std::string key_of_socket(const std::string& socket);
std::string key_of_function(const std::string& pci_address);

/// The name of an abstract Unix socket, which ends with its process, of process `pid` for the device with this key.
/// `number`: it can have the device open again before it has closed a lost one.
std::string status_name(const std::string& key, int pid, unsigned number);

/// What a process has told about a device that it has open.
struct StatusView {
  int pid = 0;        // as the kernel says
  unsigned user = 0;  // of the process
  std::string name;   // of its socket
  StatusReport report;
  std::vector<gba_group_status> groups;
};
/// Asks the processes of this user (as root: of all users) that have the device open. The answer of one for which the
/// device is healthy, if there is one. Errors: no_such_process there is none; timed out; else what is wrong with an
/// answer.
base::Result<StatusView> look_through_opener(const std::string& key);
/// Asks the same process again.
base::Result<StatusView> look_again(const StatusView& before);

}  // namespace gba
