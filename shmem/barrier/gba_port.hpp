// SPDX-License-Identifier: Apache-2.0
// RAII over the driver's C handles: this PE's port of the switch, and its membership in a group.
#pragma once

#include <memory>

#include "gba/gba.h"
#include "shmem/result.hpp"

namespace shmem {

struct CloseDevice {
  void operator()(gba_device* device) const { gba_close(device); }
};
struct LeaveGroup {
  void operator()(gba_group* group) const {
    gba_group_leave(group);
  }  // a lost device needs no leaving: nothing to report
};
using GbaPort = std::unique_ptr<gba_device, CloseDevice>;
using GbaMembership = std::unique_ptr<gba_group, LeaveGroup>;

/// Opens the GBA that the environment names. The Error says why there is none, which is a normal way to run.
inline Result<GbaPort> open_gba_port() {
  gba_device* device = nullptr;
  const int error = gba_open(nullptr, &device);
  if (error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  return GbaPort(device);
}

}  // namespace shmem
