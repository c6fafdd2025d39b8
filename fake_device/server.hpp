// SPDX-License-Identifier: Apache-2.0
// The process: one thread that looks at doorbells, sockets and timers in turn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fake_device/engine.hpp"
#include "fake_device/listener.hpp"
#include "fake_device/log.hpp"
#include "fake_device/result.hpp"
#include "fake_device/server_parts.hpp"
#include "fake_device/session.hpp"

namespace fake_device {

struct Options {
  const Profile* profile = &gba_profile();
  std::string socket;
  std::string admin_socket;      // of the privileged port; empty: there is none
  unsigned mode = kPrivateMode;  // of the socket; that of the privileged port is private
  unsigned ports = GBA_MAX_MEMBERS;
  Time idle = 200 * kMicrosecond;
  std::vector<TimedInjection> faults;   // that check() accepts
  std::optional<unsigned> group_limit;  // of an ordinary port; nothing: as the device is powered on
  bool debug_region = false;
  bool trust_memory = false;  // of clients: stored to directly, whether or not they can take it away meanwhile
  Time stats = 0;             // between two lines of statistics; 0: none
  LineFormat format = LineFormat::kText;
  unsigned processors = 1;  // for the device and its clients
  Time watchdog = kNever;   // how often `alive` is to be called
  std::function<void()> alive;
};

/// Used by one thread.
class Server final : public SessionHost {
 public:
  /// `log` must outlive the server. `stop_signals`: a signalfd that ends run().
  static Result<std::unique_ptr<Server>> create(const Options& options, const Log& log, base::UniqueFd stop_signals);
  ~Server();

  /// Serves until a stop signal comes, then tells all members that the links are down.
  void run();

  Engine& engine() override { return engine_; }
  const Log& log() override { return log_; }
  InterruptQueue& interrupts() override { return interrupts_; }
  Closer& closer() override { return closer_; }
  DmaPool& dma_pool() override { return dma_pool_; }
  [[nodiscard]] Time now() const override { return now_; }
  void wants_attention(int socket) override;

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
    bool queued = false;       // in under_way_
  };

  Server(const Options& options, const Log& log, base::UniqueFd stop_signals, base::UniqueFd epoll);
  static base::UniqueFd open_spare();
  Result<void> open_entrance(const std::string& path, unsigned mode, PortPool ports);

  void look_at_doorbells();
  void finish_interrupts();
  void rest();
  void sleep();
  void poll(Time wake);
  void handle(Source source, int fd, std::uint32_t events);
  void handle_session(Watched& watched, std::uint32_t events);
  void carry_on();
  void look_in_between();
  void accept_some(Entrance& entrance);
  void add_session(Entrance& entrance, base::UniqueFd socket);
  std::shared_ptr<FdAccount> account_of(int socket);
  Given take(base::UniqueFd socket);
  bool refuse_one(const Entrance& entrance);
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
  InterruptQueue interrupts_{signaller_};
  Closer closer_;
  DmaPool dma_pool_;
  Pacer pacer_;
  Stats stats_;
  base::UniqueFd stop_signals_;
  std::vector<std::unique_ptr<Entrance>> entrances_;
  base::UniqueFd epoll_;
  base::UniqueFd spare_;  // given up to accept, and so refuse, a client when descriptors have run out
  std::unordered_map<unsigned, std::weak_ptr<FdUser>> users_;  // by number
  std::unordered_map<int, Watched> sessions_;
  std::unordered_set<int> unwatched_;  // those whose kicks epoll does not take
  Deadlines deadlines_;                // of clients that are connected; those before VERSION are in the entrances
  Deadlines resumptions_;              // when clients are read again
  std::vector<int> attention_;
  std::vector<int> under_way_;  // sessions whose message goes on in the next turn
  bool spinning_ = false;
  bool stop_ = false;
  Time now_ = 0;
  Time last_poll_ = 0;
  Time last_scan_ = 0;
  Time next_alive_;
};

}  // namespace fake_device
