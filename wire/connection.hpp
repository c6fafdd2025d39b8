// SPDX-License-Identifier: Apache-2.0
// Frames over one TCP connection.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/fd.hpp"
#include "base/private_fd.hpp"
#include "base/result.hpp"
#include "wire/frames.hpp"

namespace wire {

/// Nothing waits: what the kernel does not take yet is kept. Used by one thread.
class Connection {
 public:
  /// `socket` does not block. A frame with more payload than `most` is an Error, until allow().
  Connection(base::UniqueFd socket, std::size_t most) : socket_(std::move(socket)), reader_(most) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  void allow(std::size_t most) { reader_.allow(most); }
  /// From now on each frame of the other side has a seal.
  void require(Seals seals) { reader_.require(seals); }
  /// From now on each frame of this side has one.
  void seal(Seals seals) { seals_ = seals; }

  /// These two: false if the other side has gone. What was kept is dropped then.
  bool send(const FrameBytes& frame);
  bool write();
  /// The bytes that are kept.
  [[nodiscard]] std::size_t unsent() const { return unsent_; }

  /// Takes bytes that have come, once: the next poll() returns at once if there are more, so another side that floods
  /// this one gets its turn only. An Error says why there will be no more. Without `keeps` they are dropped.
  base::Result<void> read(bool keeps = true);
  /// The next frame, as FrameReader::next().
  base::Result<std::optional<Frame>> next() { return reader_.next(); }

 private:
  void keep(FrameBytes bytes) {
    unsent_ += bytes->size();
    out_.push_back(std::move(bytes));
  }

  base::PrivateFd socket_;
  FrameReader reader_;
  std::optional<Seals> seals_;
  std::deque<FrameBytes> out_;
  std::size_t sent_ = 0;  // bytes of the first element of `out_`
  std::size_t unsent_ = 0;
};

}  // namespace wire
