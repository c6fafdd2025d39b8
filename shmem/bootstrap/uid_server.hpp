// SPDX-License-Identifier: Apache-2.0
// The server of a job's bootstrap: one thread in the process of one PE, to which all PEs connect.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shmem/bootstrap/helper_thread.hpp"
#include "shmem/bootstrap/uid_address.hpp"
#include "shmem/bootstrap/uid_room.hpp"
#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The thread waits for nobody: sockets do not block, and who says nothing is dropped in time. Its public calls are the
/// owner's to make, one at a time.
class UidServer {
 public:
  /// Serves on `listener`.
  static Result<std::unique_ptr<UidServer>> start(UniqueFd listener, const UidRoom::Job& job);
  UidServer(const UidServer&) = delete;
  UidServer& operator=(const UidServer&) = delete;
  /// Ends the thread. After close() that waits until the others have left too, but not for ever; else they are told
  /// that the job has failed.
  ~UidServer();

  /// The owner has left the job in good order.
  void close() { in_order_ = true; }
  /// Waits until everything that was to be sent has been handed to the kernel, at most `limit`.
  void flush(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    UniqueFd socket;
    std::string from;
    Clock::time_point since;
    FrameReader reader;
    int pe = -1;           // none yet
    bool closing = false;  // closed as soon as everything is sent
    std::deque<FrameBytes> out;
    std::size_t sent = 0;  // of the first of `out`
  };
  using Connections = std::map<int, Connection>;  // by descriptor

  UidServer(UniqueFd listener, UniqueFd poll, UniqueFd wake, const UidRoom::Job& job);

  void run();
  /// False when there is nothing more to do.
  bool go_on();
  [[nodiscard]] int poll_time() const;
  void accept_all();
  void stop_listening();
  void read(Connection& connection);
  void take(Connection& connection, const Frame& frame);
  void send(Connection& connection, const FrameBytes& bytes);
  void write(Connection& connection);
  void drop(int descriptor, const std::string& why);
  void drop_silent();
  void hear_again();
  void deliver();
  void watch(const Connection& connection, bool to_write);
  void report_flushed();

  // Fixed after construction.
  const std::chrono::milliseconds limit_;
  const std::size_t most_strangers_;
  UniqueFd poll_;
  UniqueFd wake_;
  // The thread's.
  UniqueFd listener_;
  std::optional<Clock::time_point> deaf_until_;  // no more descriptors: nobody is accepted before
  UidRoom room_;
  Connections connections_;
  std::deque<int> strangers_;              // connections that have not said who they are, the oldest first
  std::vector<int> descriptors_;           // of each PE; -1: none
  std::optional<Clock::time_point> last_;  // when to end, whoever is there
  // Of both.
  bool in_order_ = false;  // written before finishing_
  std::atomic<bool> finishing_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool flush_wanted_ = false;  // under mutex_

  HelperThread thread_;
};

}  // namespace shmem
