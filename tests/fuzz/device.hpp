// SPDX-License-Identifier: Apache-2.0
// The server's side of the session target: real sessions over socket pairs, without a loop, a listener or a clock.
#pragma once

#include <memory>
#include <vector>

#include "fake_device/session.hpp"

namespace fuzz {

inline constexpr unsigned kMembers = 2;  // ports 0 and 1
inline constexpr unsigned kClientPorts = 3;

/// Used by one thread. Each step handles everything that is pending, so the behaviour depends on the input only.
class Device final : public fake_device::SessionHost {
 public:
  Device(fake_device::EventSignaller& signaller, fake_device::Closer& closer);
  ~Device();

  /// The client's end of a new connection; non-blocking.
  base::UniqueFd connect();
  /// Handles doorbells, sockets, kicks and timers until nothing is pending.
  void settle();
  void pass(fake_device::Time time);
  void sleep_and_wake();
  [[nodiscard]] fake_device::Time now() const override { return now_; }
  [[nodiscard]] std::size_t sessions() const { return sessions_.size(); }
  [[nodiscard]] fake_device::PortPool& ports() { return ports_; }

  fake_device::Engine& engine() override { return engine_; }
  const fake_device::Log& log() override { return log_; }
  fake_device::InterruptQueue& interrupts() override { return interrupts_; }
  fake_device::Closer& closer() override { return closer_; }
  fake_device::DmaPool& dma_pool() override { return dma_pool_; }
  void wants_attention(int socket) override { attention_.push_back(socket); }

 private:
  bool handle(fake_device::Session& session);
  void handle_kicks();
  void drop_ended();

  fake_device::Log log_;
  fake_device::InterruptQueue interrupts_;
  fake_device::Closer& closer_;
  fake_device::DmaPool dma_pool_;
  fake_device::Engine engine_;
  fake_device::PortPool ports_;
  std::vector<std::unique_ptr<fake_device::Session>> sessions_;
  std::vector<int> attention_;
  fake_device::Time now_ = 1'000'000;
};

}  // namespace fuzz
