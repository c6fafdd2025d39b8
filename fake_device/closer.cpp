// SPDX-License-Identifier: Apache-2.0
#include "fake_device/closer.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "uapi/gba_regs.h"

namespace fake_device {
namespace {

// For descriptors of messages that are refused.
constexpr std::size_t kReserve = 2 * Closer::kMostAtOnce;
// The server's own: two memory files and a kick for each client, and what it needs for itself.
constexpr std::size_t kOwn = std::size_t{3} * GBA_MAX_MEMBERS + kReserve;

// A thread that has closed everything looks again after this time, so that what comes one by one wakes it once in this
// time and not each time.
constexpr auto kNap = std::chrono::milliseconds(1);
// And it ends if nothing has come for this time.
constexpr auto kIdle = std::chrono::seconds(10);
// Items that a thread takes at once.
constexpr std::size_t kBatch = 16;
// Closing a batch that takes longer is not the scheduler's doing.
constexpr auto kLong = std::chrono::milliseconds(250);
// The most that a socket which lingers holds up those behind it.
constexpr auto kMostLinger = std::chrono::milliseconds(50);

/// Sends the thread that made it a signal at each kMostLinger while it is armed. A signal ends the waiting for sockets
/// that linger: they go on in the kernel without the thread.
class Interrupter {
 public:
  Interrupter() {
    install_handler();
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = number();
    event._sigev_un._tid = ::gettid();
    there_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  }
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;
  ~Interrupter() {
    if (there_) {
      ::timer_delete(timer_);
    }
  }

  void arm() { set(true); }
  void disarm() { set(false); }

 private:
  static int number() { return SIGRTMIN; }

  // Without SA_RESTART, so that system calls end.
  static void install_handler() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(number(), &action, nullptr);
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, number());
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }

  void set(bool armed) {
    if (there_ && armed != armed_) {
      const timespec time{.tv_sec = 0, .tv_nsec = armed ? std::chrono::nanoseconds(kMostLinger).count() : 0};
      const itimerspec each{.it_interval = time, .it_value = time};
      ::timer_settime(timer_, 0, &each, nullptr);
      armed_ = armed;
    }
  }

  timer_t timer_{};
  bool there_ = false;
  bool armed_ = false;
};

}  // namespace

struct Closer::State {
  // The rest REQUIRE: mutex is held.
  static ClosingLane& lane_of(const ClosingItem& item) {
    FdUser& user = *item.account->user;
    return item.is_connection ? user.connections : user.files;
  }
  /// The next items.
  std::list<ClosingItem> take(ClosingLane& lane) {
    std::list<ClosingItem> items;
    const std::size_t count = std::min(lane.queue.size(), kBatch);
    items.splice(items.begin(), lane.queue, lane.queue.begin(),
                 std::next(lane.queue.begin(), static_cast<long>(count)));
    lane.closing_since = std::chrono::steady_clock::now();
    ++busy;
    waiting -= count;
    return items;
  }
  void closed(ClosingLane& lane) {
    lane.closing_since = std::chrono::steady_clock::time_point{};
    lane.behind = 0;
    --busy;
    less.notify_all();
  }
  /// Closes what is in the lane.
  void empty(ClosingLane& lane, Interrupter& interrupter, std::unique_lock<std::mutex>& lock) {
    interrupter.arm();
    while (!lane.queue.empty()) {
      std::list<ClosingItem> items = take(lane);
      lock.unlock();
      for (ClosingItem& item : items) {
        if (item.fd) {
          close(item.fd.release());
          --item.account->waiting;
          --item.account->open;
          --item.account->user->open;
          --open;
        }
        item.mapping = base::Mapping();
      }
      lock.lock();
      closed(lane);
    }
    interrupter.disarm();
  }

  State(std::size_t files, Close how)
      : limit(std::max(files / 2, files - std::min(files, kOwn + kReserve))),
        end(limit + std::min(kReserve, (files - limit) / 2)),
        share(limit - limit / 4),
        room(limit / 4),
        close(how) {}

  const std::size_t limit;
  const std::size_t end;
  const std::size_t share;  // of one user
  const std::size_t room;   // for the files of one user that cannot be closed
  const Close close;
  std::atomic<std::size_t> open = 0;
  std::mutex mutex;
  std::condition_variable more;    // in a lane whose thread sleeps
  std::condition_variable others;  // a lane has got no thread
  std::condition_variable less;
  std::list<ClosingLane*> without_thread;
  std::size_t waiting = 0;  // in all lanes
  std::size_t busy = 0;     // lanes of which some are being closed
  bool stop = false;
};

std::size_t Closer::open_file_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// A socket that is told not to linger does not occupy the thread. One that lies unread in this one does, for
// kMostLinger.
void Closer::close_one(int fd) {
  const linger no{};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &no, sizeof no);
  ::close(fd);
}

namespace {

/// False: there is no thread, or no memory for one.
template <typename Body>
bool start_thread(Body body) {
  try {
    std::thread(std::move(body)).detach();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Closer::Closer(std::size_t files, Close close) : state_(std::make_shared<State>(files, close)) {
  start_thread([state = state_] { work_for_others(state); });
}

Closer::~Closer() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->more.notify_all();
  state_->others.notify_all();
}

bool Closer::full(const FdUser& user) const {
  return state_->open >= state_->limit || user.open >= state_->share;
}

bool Closer::overfull(const FdUser& user) const {
  return user.open >= state_->share + (state_->limit + 7) / 8;
}

bool Closer::exhausted() const {
  return state_->open >= state_->end;
}

bool Closer::stuck(const FdUser& user) const {
  const auto since = user.files.closing_since.load();
  return user.files.behind > state_->room && since != std::chrono::steady_clock::time_point{} &&
         std::chrono::steady_clock::now() - since >= kLong;
}

bool Closer::done(unsigned milliseconds) const {
  std::unique_lock lock(state_->mutex);
  return state_->less.wait_for(lock, std::chrono::milliseconds(milliseconds),
                               [this] { return state_->waiting == 0 && state_->busy == 0; });
}

// `user` keeps the lane.
void Closer::work(const std::shared_ptr<State>& state, const std::shared_ptr<FdUser>& /*user*/, ClosingLane& lane) {
  Interrupter interrupter;
  std::unique_lock lock(state->mutex);
  do {
    state->empty(lane, interrupter, lock);
    lock.unlock();
    std::this_thread::sleep_for(kNap);
    lock.lock();
    lane.sleeps = lane.queue.empty();
    state->more.wait_for(lock, kIdle, [&] { return state->stop || !lane.queue.empty(); });
    lane.sleeps = false;
  } while (!lane.queue.empty());
  lane.served = false;
}

// One lane after another.
void Closer::work_for_others(const std::shared_ptr<State>& state) {
  Interrupter interrupter;
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->others.wait(lock, [&] { return state->stop || !state->without_thread.empty(); });
    if (state->without_thread.empty()) {
      return;
    }
    ClosingLane& lane = *state->without_thread.front();
    const std::shared_ptr<FdUser> user = lane.queue.front().account->user;
    lane.place.splice(lane.place.begin(), state->without_thread, state->without_thread.begin());
    state->empty(lane, interrupter, lock);
    lane.served = false;
  }
}

void Closer::add(const std::shared_ptr<State>& state, std::list<ClosingItem>& item) {
  const std::lock_guard lock(state->mutex);
  ClosingLane& lane = State::lane_of(item.front());
  const std::shared_ptr<FdUser> user = item.front().account->user;
  item.front().account->waiting += item.front().fd ? 1 : 0;
  lane.queue.splice(lane.queue.end(), item);
  ++lane.behind;
  ++state->waiting;
  if (std::exchange(lane.sleeps, false)) {
    state->more.notify_all();
  }
  if (!std::exchange(lane.served, true) && !start_thread([state, user, &lane] { work(state, user, lane); })) {
    state->without_thread.splice(state->without_thread.end(), lane.place);
    state->others.notify_one();
  }
}

Given::Given(Closer& closer, std::shared_ptr<FdAccount> account, base::UniqueFd fd, bool is_connection)
    : state_(closer.state_) {
  ++account->open;
  ++account->user->open;
  ++state_->open;
  item_.push_back({.fd = std::move(fd), .mapping = {}, .account = std::move(account), .is_connection = is_connection});
}

Given::Given(const Given& file, base::Mapping mapping) : state_(file.state_) {
  item_.push_back({.fd = base::UniqueFd(), .mapping = std::move(mapping), .account = file.item_.front().account});
}

Given::Given(Given&& other) noexcept : state_(std::move(other.state_)), item_(std::move(other.item_)) {
  other.item_.clear();
}

Given& Given::operator=(Given&& other) noexcept {
  std::swap(state_, other.state_);
  item_.swap(other.item_);
  return *this;
}

Given::~Given() {
  if (!item_.empty()) {
    Closer::add(state_, item_);
  }
}

}  // namespace fake_device
