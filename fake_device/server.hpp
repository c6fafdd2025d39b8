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
#include "fake_device/silent_clients.hpp"
#include "fake_device/stats.hpp"

namespace fake_device {

struct Options {
  const Profile* profile = &gba_profile();
  std::string socket;
  std::string admin_socket;      // of the privileged port; empty: there is none
  unsigned mode = kPrivateMode;  // of the socket; that of the privileged port is private
  unsigned ports = GBA_MAX_MEMBERS;
  Time idle = 200 * kMicrosecond;
  std::vector<TimedInjection> faults;  // that check() accepts
  bool debug_region = false;
  Time stats = 0;  // between two lines of statistics; 0: none
  LineFormat format = LineFormat::kText;
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
  EventSignaller& signaller() override { return signaller_; }
  void wants_attention(int socket) override { attention_.push_back(socket); }

 private:
  enum class Source : std::uint32_t { kListener, kSignal, kSession, kKick };
  /// A socket, and the ports that one gets there.
  struct Entrance {
    Listener listener;
    PortPool ports;
    SilentClients silent;   // of its own: a flood at one entrance must not close the other
    bool listening = true;  // false: there is no room for one more silent client
  };
  struct Watched {
    std::unique_ptr<Session> session;
    Entrance* entrance = nullptr;
    std::uint32_t events = 0;  // that epoll was told of
    bool kick = false;         // its eventfd too
  };

  Server(const Options& options, const Log& log, UniqueFd stop_signals, UniqueFd epoll);
  Result<void> open_entrance(const std::string& path, unsigned mode, PortPool ports);

  void look_at_doorbells();
  void rest();
  void sleep();
  void poll(Time wake);
  void handle(Source source, int fd, std::uint32_t events);
  void handle_session(Session& session, std::uint32_t events) const;
  void accept_some(Entrance& entrance);
  void add_session(Entrance& entrance, UniqueFd socket);
  void refuse_one(const Entrance& entrance);
  void watch_listeners();
  void drop_silent(const Entrance& entrance);
  void pay_attention();
  void print_stats();
  [[nodiscard]] Time next_wake() const;
  void settle(int fd);
  void watch_kick(Watched& watched);
  void drop(int fd);
  bool control(int operation, Source source, int fd, int tag, std::uint32_t events) const;

  const Options options_;
  const Log& log_;
  Engine engine_;
  EventSignaller signaller_;
  Pacer pacer_;
  Stats stats_;
  UniqueFd stop_signals_;
  std::vector<std::unique_ptr<Entrance>> entrances_;
  UniqueFd epoll_;
  UniqueFd spare_;  // given up to accept, and so refuse, a client when descriptors have run out
  std::unordered_map<int, Watched> sessions_;
  std::vector<int> attention_;
  bool spinning_ = false;
  bool stop_ = false;
  Time now_ = 0;
  Time last_poll_ = 0;
};

}  // namespace fake_device
