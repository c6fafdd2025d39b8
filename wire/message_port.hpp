// SPDX-License-Identifier: Apache-2.0
// Messages between processes of different nodes that come and go, and that are not PEs of one job.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace wire {

using base::Result;

/// The longest body: over TCP, UCX 1.13 sends up to 64 KiB, headers included, as one frame.
constexpr std::size_t kLongestBody = std::size_t{60} << 10;
constexpr std::size_t kMessageHeadBytes = 56;

/// The port reads it until it has been sent.
struct PortMessage {
  std::array<std::byte, kMessageHeadBytes> head{};
  std::unique_ptr<std::byte[]> body;
  std::size_t bytes = 0;
  /// Counted down by 1 when the body is not needed any more, whether it has been sent or not. May be null.
  std::shared_ptr<std::atomic<std::uint32_t>> under_way;
};

/// What the port calls, in its thread only. None may wait. One that throws std::bad_alloc is called again after a
/// moment, but for `receive`: that message is lost.
struct PortHandlers {
  /// Any program that reaches this process can send a message. Both parts are valid during the call. May call send().
  std::function<void(std::span<const std::byte> head, std::span<const std::byte> body)> receive;
  /// The process at the end of this route can be reached. May be empty.
  std::function<void(std::uint64_t route)> connected = {};
  /// That process is gone, or cannot be reached. Close the route.
  std::function<void(std::uint64_t route, const std::string& why)> lost;
  /// Called after messages have come or gone. True: it has sent something, or wants to be called again.
  std::function<bool()> turn;
};

/// A thread that sends and receives, and sleeps when there is nothing to do. Thread-safe.
class MessagePort {
 public:
  MessagePort() = default;
  MessagePort(const MessagePort&) = delete;
  MessagePort& operator=(const MessagePort&) = delete;
  /// Ends the thread: afterwards no handler is called. Messages that have not been sent are dropped after a moment.
  virtual ~MessagePort() = default;

  /// By which other processes reach this one.
  [[nodiscard]] virtual const std::vector<std::byte>& address() const = 0;
  /// Equal at both ends of a route, since the protocol of the library below depends on it.
  [[nodiscard]] virtual std::uint64_t version() const = 0;
  /// "ucx 1.13.1 (tcp)"
  [[nodiscard]] virtual std::string describe() const = 0;

  /// A way to the process with this address, which is tried at once. Numbers are never used twice. Routes to the same
  /// address share a connection.
  virtual std::uint64_t open(std::vector<std::byte> address) = 0;
  /// Drops what has not been sent, if there is no other route to the same address.
  virtual void close(std::uint64_t route) = 0;
  /// Messages of a route are sent in their order. Dropped if the route is closed.
  virtual void send(std::uint64_t route, PortMessage message) = 0;
};

/// Fails if this library was built without UCX, or the library is missing. `rdma_only`: SHMEM_NETWORK_REQUIRE=rdma.
Result<std::unique_ptr<MessagePort>> make_message_port(PortHandlers handlers, bool rdma_only,
                                                       const std::string& library = "libucp.so.0");

}  // namespace wire
