// SPDX-License-Identifier: Apache-2.0
// The process: one thread that looks at doorbells, sockets and timers in turn.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fake_device/engine.hpp"
#include "fake_device/listener.hpp"
#include "fake_device/log.hpp"
#include "fake_device/pacer.hpp"
#include "fake_device/port_pool.hpp"
#include "fake_device/result.hpp"
#include "fake_device/session.hpp"

namespace fake_device {

struct Options {
  std::string socket;
  unsigned ports = GBA_MAX_MEMBERS;
  Time idle = 200 * kMicrosecond;
  unsigned processors = 1;  // for the device and its clients
};

/// Used by one thread.
class Server final : public SessionHost {
 public:
  /// `log` must outlive the server. `stop_signals`: a signalfd that ends run().
  static Result<std::unique_ptr<Server>> create(const Options& options, const Log& log, UniqueFd stop_signals);
  ~Server();

  /// Serves until a stop signal comes, then tells all members that the links are down.
  void run();

  Engine& engine() override { return engine_; }
  const Log& log() override { return log_; }
  void wants_attention(int socket) override { attention_.push_back(socket); }

 private:
  enum class Source : std::uint32_t { kListener, kSignal, kSession, kKick };
  struct Watched {
    std::unique_ptr<Session> session;
    std::uint32_t events = 0;  // that epoll was told of
    bool kick = false;         // its eventfd too
  };

  Server(const Options& options, const Log& log, UniqueFd stop_signals, Listener listener, UniqueFd epoll);

  void look_at_doorbells();
  void rest();
  void sleep();
  void poll(int timeout_ms);
  [[nodiscard]] int sleep_limit() const;
  void handle(Source source, int fd, std::uint32_t events);
  void handle_session(Session& session, std::uint32_t events) const;
  void accept_some();
  void add_session(UniqueFd socket);
  void refuse_one();
  [[nodiscard]] std::size_t silent_sessions() const;
  void watch_listener();
  void drop_silent();
  void pay_attention();
  void settle(int fd);
  void watch_kick(Watched& watched);
  void drop(int fd);
  bool control(int operation, Source source, int fd, int tag, std::uint32_t events) const;

  const Options options_;
  const Log& log_;
  Engine engine_;
  PortPool ports_;
  Pacer pacer_;
  UniqueFd stop_signals_;
  Listener listener_;
  UniqueFd epoll_;
  UniqueFd spare_;  // given up to accept, and so refuse, a client when descriptors have run out
  std::unordered_map<int, Watched> sessions_;
  std::vector<int> attention_;
  bool listening_ = true;
  bool spinning_ = false;
  bool stop_ = false;
  Time next_silent_ = kNever;  // no session's deadline for VERSION is earlier
  Time now_ = 0;
  Time last_poll_ = 0;
};

}  // namespace fake_device
