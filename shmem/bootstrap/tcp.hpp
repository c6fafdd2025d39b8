// SPDX-License-Identifier: Apache-2.0
// The bootstrap over TCP: every PE is connected to the server in one PE's process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/helper_thread.hpp"
#include "base/private_fd.hpp"
#include "shmem/bootstrap/bootstrap.hpp"
#include "shmem/bootstrap/uid_protocol.hpp"
#include "shmem/bootstrap/uid_server.hpp"
#include "shmem/bootstrap/uid_session.hpp"

namespace shmem {

/// A PE's settings for joining.
struct TcpPlace {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds limit = kBootstrapLimit;          // for each step
  bool retries = false;                                       // the server may not listen yet
  std::chrono::milliseconds grace = std::chrono::seconds(2);  // for this process to end when a PE ends the job
};

/// After a failed step, all later ones fail at once with the same Error. A thread receives what the server sends at any
/// time. It ends the process if a PE has ended the job and the process does not end by itself.
/// Thread safety: see Bootstrap.
class TcpBootstrap final : public Bootstrap {
 public:
  /// Returns when all PEs have joined. `listener`: for the PE whose process is the server.
  static Result<std::unique_ptr<TcpBootstrap>> join(const UniqueId& id, const TcpPlace& place,
                                                    std::optional<UidListener> listener = std::nullopt);
  ~TcpBootstrap() override;

  [[nodiscard]] int rank() const override { return place_.rank; }
  [[nodiscard]] int size() const override { return place_.size; }
  Result<std::vector<std::byte>> allgather(std::span<const std::byte> mine) override;
  int abort(int status, const std::string& reason) override;
  [[nodiscard]] std::optional<std::string> aborted() const override;
  [[nodiscard]] const std::atomic<std::uint32_t>* alarm() const override { return &ended_; }
  Result<void> survive() override;
  void leave() override;
  void serve_others() override;

 private:
  using Clock = std::chrono::steady_clock;
  /// Not an aggregate: without memory for its second text, gcc 12 destroys the first one twice.
  struct End {
    End(Error why, std::optional<int> by, std::string told, bool early = false)
        : error(std::move(why)), status(by), reason(std::move(told)), is_early(early) {}
    Error error;
    std::optional<int> status;  // if a PE has called abort()
    std::string reason;         // its reason, or the error's text
    bool is_early;              // the connection ended before this PE was accepted: it can be made again
  };

  TcpBootstrap(const UniqueId& id, const TcpPlace& place) : id_(id), place_(place) {}

  Result<void> join_server();
  /// One attempt to connect and to be accepted by the server.
  Result<void> try_to_join(Clock::time_point deadline);
  void disconnect();
  Result<void> send(const FrameBytes& bytes);
  Result<void> send_sealed(const FrameBytes& bytes);
  /// Waits until `done()`, the end of the job or `limit`. `done` is called under mutex_.
  template <typename Done>
  Result<void> await(std::chrono::milliseconds limit, Done done);

  // Called by the thread.
  void listen();
  void hear_server();
  void handle(Frame frame);
  /// The first frame of a connection: is it from the server of this PE's job? Then this PE proves itself, too.
  bool verify(const Frame& frame);
  void set_end(End end);
  [[nodiscard]] std::string server_name() const;
  /// The server has not accepted this PE yet.
  [[nodiscard]] bool is_early() const;
  void lose_server(std::errc code, const std::string& why);
  void end_process_unless_it_ends();

  const UniqueId id_;
  const TcpPlace place_;
  std::unique_ptr<UidServer> server_;  // in one PE
  base::PrivateFd socket_;
  Hello hello_{};               // of this connection
  std::mutex send_mutex_;       // for the next: frames are sealed in the order in which they are sent
  std::optional<Seals> seals_;  // of this PE's frames, once it has sent its proof
  bool left_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<int> server_pe_;  // once this PE has been accepted
  bool welcome_ = false;          // all PEs have joined
  std::uint32_t step_ = 0;        // the last step begun
  std::optional<std::vector<std::byte>> gathered_;
  std::optional<End> end_;
  bool going_ = false;     // this PE leaves or ends the job
  bool survives_ = false;  // a PE that is lost, or the server, does not end the job

  std::atomic<std::uint32_t> ended_{0};  // 1: end_ is set, and the job has ended
  base::HelperThread thread_;
};

}  // namespace shmem
