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

/// Messages of one tag that are under way, in the order in which they were begun. An Error says which PE the message
/// was to or from, and gives up all others, so that no failed call leaves the network at work in its memory; so does
/// the end of this object.
class Messages {
 public:
  /// No wait is longer than until `deadline`; without one, than what the network allows.
  Messages(Network& network, std::uint64_t tag, Deadline deadline = {})
      : network_(network), tag_(tag), deadline_(deadline) {}
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  ~Messages() { give_up(); }

  // PEs are world numbers.
  Result<void> send(int pe, const void* from, std::size_t bytes);
  Result<void> receive(int pe, void* to, std::size_t bytes);

  [[nodiscard]] std::size_t count() const { return under_way_.size(); }
  /// Until the first one is done. REQUIRES: there is one.
  Result<void> wait_first();
  /// Until so many are left.
  Result<void> wait(std::size_t left = 0);
  /// True: all are done.
  Result<bool> test();
  /// "message from PE 3": the first one. REQUIRES: there is one.
  [[nodiscard]] std::string first() const;

 private:
  struct Message {
    std::uint64_t request;
    int pe;
    bool sent;
  };
  Result<void> begin(Message message, const Result<std::uint64_t>& request);
  tl::unexpected<Error> failure(const Message& message, const Error& error);
  void give_up();

  Network& network_;
  std::uint64_t tag_;
  Deadline deadline_;
  std::deque<Message> under_way_;
};

}  // namespace shmem
