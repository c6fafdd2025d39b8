// SPDX-License-Identifier: Apache-2.0
// This PE's port of the switch, which PEs of the node have one, and how this library waits in libgba's barriers.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "gba/barrier.h"
#include "shmem/layout/job.hpp"

namespace shmem {

/// The device of this PE, which may be lost and come back. Shared by all teams of the PE.
class GbaPort {
 public:
  /// The GBA that the environment names. If it names none and the machine has several functions, the one of PE `pe` of
  /// this node.
  explicit GbaPort(int pe) : pe_(pe) {}

  /// An Error says why there is no port. Running without one is normal.
  Result<void> open();
  /// Leaves the port to other processes.
  void close() { port_.reset(); }
  /// nullptr if it is not open.
  [[nodiscard]] gba_barrier_port* get() const { return port_.get(); }
  /// Facts about the device; an Error unless it is known to be healthy.
  [[nodiscard]] Result<gba_device_info> info() const;

 private:
  struct Close {
    void operator()(gba_barrier_port* port) const { gba_barrier_port_close(port); }
  };

  int pe_;
  std::unique_ptr<gba_barrier_port, Close> port_;
};

// PEs 0..m-1 of a node with m ports have one each.
/// Opens `port` if one is available, and publishes the outcome: the other PEs read it after the bootstrap's next
/// barrier. An Error says why there is no port.
Result<void> try_port(const Job& job, GbaPort& port);
/// Collective, after that barrier: how many ports the PEs have, the same on all. If a PE without a port is in front of
/// one with a port, ports change hands, which takes two more barriers.
Result<int> settle_ports(const Job& job, GbaPort& port);

/// What a member contributes when a team asks for the device.
struct GbaMember {
  GbaPort* port;            // nullptr: this PE has no port and will not get one
  std::string unavailable;  // why not
  bool wanted;              // the environment and the size of the team allow it
  WaitPolicy policy;
  std::chrono::milliseconds retry{100};  // the first pause after a group was not available again
  bool needed = false;                   // even for a team behind one port
};

struct DestroyBarrier {
  void operator()(gba_barrier* barrier) const { gba_barrier_destroy(barrier); }
};
using BarrierHandle = std::unique_ptr<gba_barrier, DestroyBarrier>;

/// Makes libgba's barriers wait by a WaitPolicy. Must not move.
class BarrierWaiter {
 public:
  BarrierWaiter(const BarrierWaiter&) = delete;
  BarrierWaiter& operator=(const BarrierWaiter&) = delete;

 protected:
  explicit BarrierWaiter(const WaitPolicy& policy);
  ~BarrierWaiter() = default;

  /// Waits for the end of the open barrier. A result of gba/barrier.h.
  int wait(gba_barrier* barrier) { return gba_barrier_wait(barrier, &waiting_, GBA_WAIT_FOREVER); }
  [[nodiscard]] const WaitPolicy& policy() const { return policy_; }

  /// Called before each sleep: errc{} to go on. It may lower `longest`, the limit of the sleep.
  virtual std::errc check(std::chrono::nanoseconds& longest) = 0;
  virtual void sleep(std::chrono::nanoseconds time);

 private:
  static BarrierWaiter& self(void* context) { return *static_cast<BarrierWaiter*>(context); }

  const WaitPolicy policy_;
  gba_barrier_waiting waiting_{};
};

}  // namespace shmem
