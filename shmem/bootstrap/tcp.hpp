// SPDX-License-Identifier: Apache-2.0
// The bootstrap over TCP: every PE is connected to the server in one PE's process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/helper_thread.hpp"
#include "shmem/bootstrap/uid_frame.hpp"
#include "shmem/bootstrap/uid_server.hpp"
#include "shmem/bootstrap/uid_session.hpp"

namespace shmem {

/// What a PE is told before it joins.
struct TcpPlace {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds limit = kBootstrapLimit;          // for the others to come, in each step
  bool patient = false;                                       // nobody may listen there yet
  std::chrono::milliseconds grace = std::chrono::seconds(2);  // to end by itself when a PE ends the job
};

/// Once a step has failed, all later ones fail at once with the same Error. A thread of its own hears what the server
/// says at any time, and ends the process when a PE has ended the job and this one does not end by itself.
/// Thread safety: see Bootstrap.
class TcpBootstrap final : public Bootstrap {
 public:
  /// Returns when all PEs have come. `listener`: of the one PE whose process serves.
  static Result<std::unique_ptr<TcpBootstrap>> join(const UniqueId& id, const TcpPlace& place,
                                                    std::optional<UidListener> listener = std::nullopt);
  ~TcpBootstrap() override;

  [[nodiscard]] int rank() const override { return place_.rank; }
  [[nodiscard]] int size() const override { return place_.size; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  Result<void> barrier() override;
  int abort(int status, const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override;
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return &ended_; }
  void leave() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct End {
    Error error;
    std::optional<int> status;  // if a PE has called abort()
    std::string reason;         // what it said; else the error's text
  };

  TcpBootstrap(const UniqueId& id, const TcpPlace& place) : id_(id), place_(place) {}

  Result<void> enter();
  /// Once: connected, and accepted by the server.
  Result<void> try_to_enter(Clock::time_point deadline);
  void disconnect();
  Result<void> say(const FrameBytes& bytes);
  /// Until `done()`, or the job has ended, or `limit` has passed. `done` is called under mutex_.
  template <typename Done>
  Result<void> await(std::chrono::milliseconds limit, Done done);

  // What the thread does.
  void listen();
  void hear(Frame frame);
  void hear_end(End end);
  void lose_server(const std::string& why);
  void end_process_unless_it_ends();

  const UniqueId id_;
  const TcpPlace place_;
  std::unique_ptr<UidServer> server_;  // of one PE
  UniqueFd socket_;
  bool left_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  std::optional<int> server_pe_;  // once this PE has been accepted
  bool welcome_ = false;          // all have come
  std::uint32_t step_ = 0;        // the last that was begun
  std::optional<std::vector<std::byte>> gathered_;
  std::optional<End> end_;
  bool going_ = false;  // this PE leaves the job, or ends it

  std::atomic<std::uint32_t> ended_{0};  // 1: end_ is there
  HelperThread thread_;
};

}  // namespace shmem
