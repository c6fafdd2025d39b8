// SPDX-License-Identifier: Apache-2.0
// The messages of a collective call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "shmem/net/network.hpp"

namespace shmem {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// Messages of one tag that are under way, in the order of the calls. After a failure, later calls do nothing, and each
/// wait returns the same Error, which names the PE of the message. A failure and the destructor give up all messages,
/// so that the network no longer uses the caller's memory.
class Messages {
 public:
  /// No wait lasts beyond `deadline`; without one, the network's limit counts.
  Messages(Network& network, std::uint64_t tag, Deadline deadline = {})
      : network_(network), tag_(tag), deadline_(deadline) {}
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  ~Messages() { give_up(); }

  // PEs are world numbers.
  void send(int pe, const void* from, std::size_t bytes);
  void receive(int pe, void* to, std::size_t bytes);

  [[nodiscard]] const Deadline& deadline() const { return deadline_; }
  [[nodiscard]] std::size_t count() const { return under_way_.size(); }
  /// The failure, if there was one. Does not wait.
  [[nodiscard]] Result<void> outcome() const { return failed_ ? Result<void>(*failed_) : Result<void>(); }
  /// Waits for the first message. REQUIRES: there is one, or outcome() is an Error.
  Result<void> wait_first();
  /// Waits until only `left` messages are under way.
  Result<void> wait(std::size_t left = 0);
  /// True: all are done. Does not wait.
  Result<bool> test();
  /// "message from PE 3": the first one. REQUIRES: there is one.
  [[nodiscard]] std::string first() const;

 private:
  struct Message {
    std::optional<std::uint64_t> request;  // none: not begun
    int pe = 0;
    bool sent = false;
  };
  template <typename Start>
  void begin(int pe, bool sent, Start start);
  Error fail_all(const Message& message, const Error& error);
  void give_up();

  Network& network_;
  std::uint64_t tag_;
  Deadline deadline_;
  std::deque<Message> under_way_;
  std::optional<Error> failed_;
};

}  // namespace shmem
