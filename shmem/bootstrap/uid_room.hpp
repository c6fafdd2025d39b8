// SPDX-License-Identifier: Apache-2.0
// What the server of a job knows: who has come, who has said what in the open step, how it ends. No I/O, no threads;
// the time is passed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shmem/bootstrap/uid_frame.hpp"

namespace shmem {

/// The PEs of one job meet here. Once something has failed, everybody is told and nothing more is answered.
class UidRoom {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Job {
    Secret secret;
    int size;
    int server;                       // the PE whose process this is
    std::chrono::milliseconds limit;  // how long the server's own PE waits for the others to come
    std::string place;                // where they can come, for messages
    std::string how = {};             // why there, for those who cannot come
  };
  struct Message {
    int pe;
    FrameBytes bytes;
  };

  UidRoom(Job job, Time now);

  /// Somebody at `from` says who he is. His number if he is let in, or an Error with what he is to be told: a stranger
  /// is refused and remembered; a PE of this job that does not fit ends it for all.
  Result<int> enter(const Hello& hello, const std::string& from, Time now);
  /// Somebody who has not said who he is sends nonsense or nothing: remembered, for messages.
  void refuse(const std::string& from, const std::string& why);

  /// A frame of a PE that is here.
  void receive(int pe, const Frame& frame, Time now);
  /// The connection of a PE that is here has ended.
  void lose(int pe, const std::string& why);
  /// Nobody need wait any longer.
  void fail_all(Error why);
  /// Fails the step whose time has passed.
  void expire(Time now);

  /// When expire() should be called next.
  [[nodiscard]] std::optional<Time> deadline() const { return deadline_; }
  /// All have come: strangers need not be heard any more.
  [[nodiscard]] bool complete() const { return come_ == job_.size; }
  [[nodiscard]] bool failed() const { return end_.has_value(); }
  /// What is to be sent since the last call, in this order.
  std::vector<Message> take_messages() { return std::exchange(messages_, {}); }

 private:
  enum class Presence { kAbsent, kHere, kLeft, kLost };
  struct Member {
    Presence presence = Presence::kAbsent;
    std::string name;  // "host kiwi, process 1234, from 192.0.2.1:4711"
    std::optional<std::vector<std::byte>> offering;
  };

  [[nodiscard]] std::optional<std::string> misfit(const Hello& hello, const std::string& name) const;
  void gather(int pe, const Frame& frame, Time now);
  void finish_step();
  void end(Error why, const FrameBytes& bytes);
  void send_all(const FrameBytes& bytes);
  void wait_until(Time deadline);
  [[nodiscard]] std::string who(int pe) const;
  [[nodiscard]] Error left_behind(int pe) const;
  [[nodiscard]] std::vector<int> awaited() const;
  [[nodiscard]] std::string refused_text() const;

  Job job_;
  std::vector<Member> members_;
  int come_ = 0;
  int offered_ = 0;
  std::uint32_t step_ = 0;              // 0: they are coming
  std::chrono::milliseconds shortest_;  // limit of those who wait in this step
  std::optional<Time> deadline_;
  std::optional<Error> end_;  // nothing more is answered
  std::vector<std::string> refused_;
  std::size_t refusals_ = 0;
  std::vector<Message> messages_;
};

}  // namespace shmem
