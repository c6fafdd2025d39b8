// SPDX-License-Identifier: Apache-2.0
#include "fake_device/server.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <new>
#include <span>
#include <system_error>

#include "base/pause.hpp"

namespace fake_device {
namespace {

// Scans between two looks at the clock while spinning.
constexpr unsigned kPasses = 32;
constexpr Time kPollInterval = 20 * kMicrosecond;
// Instead of sleeping for less, the device yields: a sleep costs about as much.
constexpr Time kShortestSleep = 50 * kMicrosecond;
// A client whose kicks cannot be watched is looked at this often.
constexpr Time kSleepUnwatched = 1000 * kMicrosecond;
constexpr Time kLongestSleep = 86'400 * kSecond;
// Doorbells are looked at this often while clients have their turns.
constexpr Time kScanInterval = 20 * kMicrosecond;
constexpr int kEventsPerPoll = 64;

FaultInjection injection_of(const Options& options) {
  if (options.debug_region) {
    return FaultInjection::kByClients;
  }
  return options.faults.empty() ? FaultInjection::kNone : FaultInjection::kByOperator;
}

/// Linux before 5.11, and qemu-user, know milliseconds only.
int wait_for_events(int epoll, std::span<epoll_event> events, Time longest) {
  const timespec timeout{.tv_sec = static_cast<time_t>(longest / kSecond),
                         .tv_nsec = static_cast<long>(longest % kSecond)};
  const int room = static_cast<int>(events.size());
  const int count = ::epoll_pwait2(epoll, events.data(), room, &timeout, nullptr);
  if (count >= 0 || errno != ENOSYS) {
    return count;
  }
  constexpr Time kMillisecond = kSecond / 1000;
  return ::epoll_wait(epoll, events.data(), room, static_cast<int>((longest + kMillisecond - 1) / kMillisecond));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::create(const Options& options, const Log& log, base::UniqueFd stop_signals) {
  base::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    return failure("cannot make an epoll instance", errno);
  }
  std::unique_ptr<Server> server(new Server(options, log, std::move(stop_signals), std::move(epoll)));
  if (options.group_limit) {
    Engine& engine = server->engine_;
    engine.write(engine.privileged_port(), GBA_REG_GROUP_LIMIT, sizeof(std::uint64_t), *options.group_limit, 0);
  }
  if (!server->signaller_.never_waits()) {
    log.write(LogLevel::kWarning,
              "no asynchronous I/O to raise interrupts with: a client that fills its eventfd can make the device wait "
              "(is fs.aio-max-nr used up?)");
  }
  if (const auto probe = SharedPages::create("gba-probe", 1);
      (options.mode & ~kPrivateMode) != 0 && probe && !probe->is_protected()) {
    log.write(LogLevel::kWarning,
              "a client can slow others by punching holes into doorbells: forbidding that needs CAP_LINUX_IMMUTABLE");
  }
  if (server->stop_signals_ &&
      !server->control(EPOLL_CTL_ADD, Source::kSignal, server->stop_signals_.get(), 0, EPOLLIN)) {
    return failure("cannot watch for signals", errno);
  }
  auto opened = server->open_entrance(options.socket, options.mode, PortPool(0, options.ports));
  if (opened && !options.admin_socket.empty()) {
    opened = server->open_entrance(options.admin_socket, kPrivateMode, PortPool(server->engine_.privileged_port(), 1));
  }
  if (!opened) {
    return opened.error();
  }
  return server;
}

Server::Server(const Options& options, const Log& log, base::UniqueFd stop_signals, base::UniqueFd epoll)
    : options_(options),
      log_(log),
      engine_(*options.profile, options.ports, injection_of(options)),
      pacer_(options.idle, options.processors),
      stats_(options.stats, options.format, read_clock()),
      stop_signals_(std::move(stop_signals)),
      epoll_(std::move(epoll)),
      spare_(open_spare()),
      next_alive_(options.watchdog == kNever ? kNever : 0) {
  dma_pool_.trusting = options.trust_memory;
}

// Sessions end while the engine, the log and the ports are still there.
Server::~Server() {
  sessions_.clear();
}

void Server::run() {
  const Time start = read_clock();
  for (const auto& fault : options_.faults) {
    engine_.schedule(fault.injection, start + fault.at);
  }
  while (!stop_) {
    now_ = read_clock();
    look_at_doorbells();
    rest();
  }
  engine_.shut_down();
  for (auto& [fd, watched] : sessions_) {
    watched.session->on_shutdown();
    watched.session->on_writable();
  }
  finish_interrupts();
}

// Those that wait, unless clients have seen to it that they take too long.
void Server::finish_interrupts() {
  for (const Time end = read_clock() + kSecond; !interrupts_.empty() && read_clock() < end;) {
    interrupts_.next_turn();
  }
}

void Server::look_at_doorbells() {
  bool worked = !interrupts_.empty();
  interrupts_.next_turn();
  for (unsigned pass = 0; pass < (spinning_ ? kPasses : 1); ++pass) {
    if (engine_.scan(now_)) {
      worked = true;
    } else {
      base::pause_processor();
    }
  }
  if (worked) {
    pacer_.worked(now_);
  }
  if (now_ >= engine_.next_deadline()) {
    engine_.expire(now_);
  }
  if (!attention_.empty() || now_ - last_poll_ >= kPollInterval) {
    poll(0);
  }
}

void Server::rest() {
  const Rest choice = pacer_.rest(now_, engine_.joined_ports());
  spinning_ = choice == Rest::kSpin;
  const bool due_soon = engine_.next_deadline() <= now_ + kShortestSleep;
  if (choice == Rest::kYield || (choice == Rest::kSleep && due_soon)) {
    ::sched_yield();
  } else if (choice == Rest::kSleep && !stop_) {
    sleep();
  }
}

void Server::sleep() {  // uapi rule 14
  if (engine_.fall_asleep(now_) && interrupts_.empty()) {
    poll(next_wake());
  } else {
    pacer_.worked(now_);
  }
  engine_.awake();
}

Time Server::next_wake() const {
  Time wake = std::min({engine_.next_deadline(), stats_.due(), deadlines_.next(), resumptions_.next(), next_alive_});
  if (!unwatched_.empty()) {
    wake = std::min(wake, now_ + kSleepUnwatched);
  }
  for (const auto& entrance : entrances_) {
    wake = std::min(wake, entrance->silent.deadline(!entrance->listening));
  }
  return wake;
}

// Waits until `wake`; 0: not at all.
void Server::poll(Time wake) {
  const Time left =
      under_way_.empty() && interrupts_.empty() ? std::min(wake > now_ ? wake - now_ : 0, kLongestSleep) : 0;
  std::array<epoll_event, kEventsPerPoll> events{};
  const int count = wait_for_events(epoll_.get(), events, left);
  now_ = read_clock();
  last_poll_ = now_;
  if (left != 0 && count > 0) {
    engine_.count_wakeup();
  }
  for (int index = 0; index < count; ++index) {
    const auto& event = events[static_cast<std::size_t>(index)];
    handle(static_cast<Source>(event.data.u64 >> 32), static_cast<int>(event.data.u64 & 0xffffffff), event.events);
    look_in_between();
  }
  carry_on();
  while (now_ >= deadlines_.next()) {
    const int fd = deadlines_.first();
    sessions_.at(fd).session->on_deadline();
    drop(fd);
  }
  while (now_ >= resumptions_.next()) {
    settle(resumptions_.first());
  }
  pay_attention();
  for (const auto& entrance : entrances_) {
    while (now_ >= entrance->silent.deadline(/*wanted=*/false)) {
      drop_silent(*entrance);
    }
  }
  if (now_ >= stats_.due()) {
    print_stats();
  }
  if (now_ >= next_alive_) {
    next_alive_ = now_ + options_.watchdog;
    options_.alive();
  }
  watch_listeners();
}

// However many clients have something to do, members wait for one of them only.
void Server::look_in_between() {
  const Time now = read_clock();
  if (now - last_scan_ >= kScanInterval) {
    now_ = now;
    last_scan_ = now;
    interrupts_.next_turn();
    if (engine_.scan(now_)) {
      pacer_.worked(now_);
    }
  }
}

void Server::carry_on() {
  std::vector<int> turns;
  turns.swap(under_way_);
  for (const int fd : turns) {
    if (const auto found = sessions_.find(fd); found != sessions_.end()) {
      found->second.queued = false;
      handle(Source::kSession, fd, 0);
      look_in_between();
    }
  }
}

void Server::print_stats() try {
  write_line(STDOUT_FILENO, stats_.line(engine_.model(), sessions_.size(), now_));
} catch (const std::bad_alloc&) {
  return;  // the next line may find memory
}

void Server::handle(Source source, int fd, std::uint32_t events) {
  if (source == Source::kListener) {
    try {
      accept_some(*entrances_[static_cast<std::size_t>(fd)]);
    } catch (const std::bad_alloc&) {
      log_.write(LogLevel::kError, "refused a client: out of memory");
    }
    return;
  }
  if (source == Source::kSignal) {
    stop_ = true;
    return;
  }
  const auto found = sessions_.find(fd);
  if (found == sessions_.end()) {
    return;  // dropped earlier in this round
  }
  Watched& watched = found->second;
  Session& session = *watched.session;
  if (watched.queued && source == Source::kSession) {
    return;  // its turn comes
  }
  try {
    if (source == Source::kKick) {
      session.on_kick(now_);
    } else {
      handle_session(watched, events);
    }
  } catch (const std::exception& error) {
    session.on_exception(error);
  }
  settle(fd);
}

void Server::handle_session(Watched& watched, std::uint32_t events) {
  Session& session = *watched.session;
  if ((events & EPOLLOUT) != 0) {
    session.on_writable();
  }
  if (session.wants_read() || session.under_way()) {
    session.on_readable(now_);
    if (session.under_way()) {
      watched.queued = true;
      under_way_.push_back(session.socket());
    }
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    session.on_hangup();
  }
}

// Needs no memory: a session asks while another one ends.
void Server::wants_attention(int socket) {
  if (std::find(attention_.begin(), attention_.end(), socket) == attention_.end()) {
    attention_.push_back(socket);
  }
}

// Ending one session answers the members of others, which may end those in turn.
void Server::pay_attention() {
  while (!attention_.empty()) {
    const int fd = attention_.back();
    attention_.pop_back();
    settle(fd);
  }
}

bool Server::control(int operation, Source source, int fd, int tag, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(tag);
  return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

}  // namespace fake_device
