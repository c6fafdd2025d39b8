// SPDX-License-Identifier: Apache-2.0
// The server of a job's bootstrap: one thread in the process of one PE, or of oshrun, to which all PEs connect.
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

#include "base/fd.hpp"
#include "base/helper_thread.hpp"
#include "shmem/bootstrap/uid_protocol.hpp"
#include "shmem/result.hpp"
#include "wire/connection.hpp"
#include "wire/listener.hpp"

namespace shmem {

using wire::Endpoint;

/// The thread waits for no client: sockets do not block, and a silent connection is dropped after a limit. The owner
/// makes the public calls, one at a time.
class UidServer {
 public:
  /// Serves on `listener`.
  static Result<std::unique_ptr<UidServer>> start(base::UniqueFd listener, const UidJobState::Job& job);
  UidServer(const UidServer&) = delete;
  UidServer& operator=(const UidServer&) = delete;
  /// Ends the thread. After close(), first waits until the other PEs have left, up to a limit; without close(), tells
  /// them that the job has failed.
  ~UidServer();

  /// The owner has left the job without a failure.
  void close() { in_order_ = true; }
  /// Called by oshrun, which is no PE: ends the job for all PEs.
  void abort(int status, const std::string& reason);
  /// Called by oshrun, when the processes of all PEs have ended: the destructor waits for nobody.
  void stop() { at_once_ = true; }
  /// Waits until all messages have been passed to the kernel, up to `limit`.
  void flush(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    wire::Connection frames;
    Endpoint from;
    Clock::time_point since;
    std::optional<Hello> hello{};  // from its first message on
    Challenge challenge{};         // the answer to it
    int pe = -1;                   // -1: has not joined yet
    bool early = false;            // in early_
    bool closing = false;          // closed as soon as everything is sent
    bool is_short = false;         // there was no memory for what it sent, or for the answer: it is dropped
  };
  using Connections = std::map<int, Connection>;  // by descriptor

  UidServer(base::UniqueFd listener, base::UniqueFd poll, base::UniqueFd wake, const UidJobState::Job& job);

  void run();
  void take_turn();
  /// What this process does for a connection. Without memory for it, the connection ends.
  template <typename Work>
  void serve(Connection& connection, Work work);
  void drop_short();
  /// False when the thread is done.
  bool go_on();
  [[nodiscard]] int poll_time() const;
  void accept_some();
  void make_room();
  void read(Connection& connection);
  /// Why the connection ends; "": it does not.
  std::string read_frames(Connection& connection);
  void take(Connection& connection, const Frame& frame);
  void challenge(Connection& connection, const Frame& frame);
  void admit(Connection& connection, const Frame& frame);
  void enter(Connection& connection);
  void enter_early();
  void turn_away(Connection& connection, const Error& why);
  void send(Connection& connection, const FrameBytes& bytes);
  void drop(int descriptor, const std::string& why);
  void drop_silent();
  void resume_accepting();
  void deliver();
  void watch(const Connection& connection);
  void take_abort();
  void report_flushed();

  // Fixed after construction.
  const std::chrono::milliseconds limit_;
  const std::size_t most_strangers_;
  base::UniqueFd poll_;
  base::UniqueFd wake_;
  // Used by the thread.
  wire::Listener listener_;
  UidJobState state_;
  Connections connections_;
  std::deque<int> strangers_;              // connections that have not identified themselves, the oldest first
  std::vector<int> early_;                 // connections of PEs that start again before all have left
  std::vector<int> descriptors_;           // of each PE; -1: none
  bool has_short_ones_ = false;            // connections to drop
  std::optional<Clock::time_point> last_;  // when to end, even with open connections
  // Shared.
  bool in_order_ = false;  // these two: written before finishing_
  bool at_once_ = false;
  std::atomic<bool> finishing_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool flush_wanted_ = false;
  struct Abort {
    int status;
    std::string reason;
  };
  std::optional<Abort> abort_;  // to be passed to the PEs

  base::HelperThread thread_;
};

}  // namespace shmem
