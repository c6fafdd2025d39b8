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
// A close that takes longer occupies its thread: another thread goes on.
constexpr auto kLong = std::chrono::milliseconds(10);
// Items of one user that a thread takes at once. If closing one of them takes long, the others wait for it.
constexpr std::size_t kBatch = 16;
/// So does one during which as many of the same user are added: a user whose files cannot be closed must be known, by
/// the threads that it occupies (Closer::stuck), before they fill its part of the room. With enough room they are as
/// many as one message has: a client that sends whole messages of them wakes no thread each time.
std::size_t many_of(std::size_t room) {
  return std::clamp<std::size_t>(room / Closer::kMostOfOne, 1, Closer::kMostAtOnce);
}

/// Sends the thread that made it a signal every second while it is armed. A signal ends the waiting for sockets that
/// linger: they go on in the kernel without the thread.
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
      const itimerspec each{.it_interval = {.tv_sec = armed ? 1 : 0, .tv_nsec = 0},
                            .it_value = {.tv_sec = armed ? 1 : 0, .tv_nsec = 0}};
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
  /// Makes the lane ready if it may be.
  void offer(ClosingLane& lane) {
    if (!lane.place.empty() && !lane.queue.empty() && lane.busy < kMostOfOne) {
      ready.splice(ready.end(), lane.place);
    }
  }
  /// Returns what is to be notified, if anything.
  [[nodiscard]] std::condition_variable* add(std::list<ClosingItem>& item) {
    ClosingLane& lane = lane_of(item.front());
    item.front().account->waiting += item.front().fd ? 1 : 0;
    lane.queue.splice(lane.queue.end(), item);
    ++lane.behind;
    ++waiting;
    ++added;
    offer(lane);
    if (ready.empty()) {
      return nullptr;
    }
    if (napping) {
      return added >= kMostAtOnce ? &rest : nullptr;
    }
    return !watched || lane.behind % many == 0 ? &more : nullptr;
  }
  /// Whether a thread that has nothing to do has to take the next item.
  [[nodiscard]] bool short_of_threads() const {
    if (ready.empty() || napping) {
      return false;
    }
    const ClosingLane& next = *ready.front();
    return working == 0 || next.behind >= many * next.busy || std::chrono::steady_clock::now() - last_taken >= kLong;
  }
  /// Returns when the calling thread has to take an item, or to end. While items wait for a thread that is at work, one
  /// of those that have nothing to do looks whether it is occupied for long.
  void wait_for_work(std::unique_lock<std::mutex>& lock) {
    while (!stop && !short_of_threads()) {
      if (ready.empty() || watched) {
        more.wait(lock);
      } else {
        watched = true;
        more.wait_for(lock, kLong);
        watched = false;
      }
    }
  }
  /// Waits a little for more after everything was closed. False: there is nothing to do.
  bool nap(std::unique_lock<std::mutex>& lock) {
    if (ready.empty() && !napping) {
      napping = true;
      added = 0;
      rest.wait_for(lock, kNap, [this] { return stop || added >= kMostAtOnce; });
      napping = false;
    }
    return !ready.empty();
  }
  /// The next items of one lane, another one than the last time if there is another. REQUIRES: a lane is ready.
  std::list<ClosingItem> take() {
    std::list<ClosingItem> items;
    ClosingLane& lane = *ready.front();
    const std::size_t count = std::min(lane.queue.size(), kBatch);
    items.splice(items.begin(), lane.queue, lane.queue.begin(),
                 std::next(lane.queue.begin(), static_cast<long>(count)));
    lane.place.splice(lane.place.begin(), ready, ready.begin());
    ++lane.busy;
    ++busy;
    waiting -= count;
    last_taken = std::chrono::steady_clock::now();
    offer(lane);
    return items;
  }
  void closed(const ClosingItem& item) {
    ClosingLane& lane = lane_of(item);
    --lane.busy;
    lane.behind = 0;
    --busy;
    offer(lane);
    less.notify_all();
  }

  State(std::size_t files, Close how)
      : limit(std::max(files / 2, files - std::min(files, kOwn + kReserve))),
        end(limit + std::min(kReserve, (files - limit) / 2)),
        share(limit - limit / 4),
        room(limit / 4),
        many(many_of(room)),
        close(how) {}

  const std::size_t limit;
  const std::size_t end;
  const std::size_t share;  // of one user
  const std::size_t room;   // for the files of one user that cannot be closed
  const std::size_t many;
  const Close close;
  std::atomic<std::size_t> open = 0;
  std::mutex mutex;
  std::condition_variable more;
  std::condition_variable rest;
  std::condition_variable less;
  std::list<ClosingLane*> ready;  // those that wait and do not occupy too many threads
  std::size_t waiting = 0;        // in all lanes
  std::size_t busy = 0;
  std::size_t added = 0;  // since the last nap began
  std::chrono::steady_clock::time_point last_taken;
  unsigned threads = 0;
  unsigned working = 0;  // threads that close, or wait a little for more; the others are idle
  bool napping = false;  // one of those that work waits
  bool watched = false;  // one of those that are idle looks whether those that work are occupied
  bool stop = false;
};

std::size_t Closer::open_file_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// A socket that is told not to linger does not occupy the thread. One that lies unread in this one does, for a second.
void Closer::close_one(int fd) {
  const linger no{};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &no, sizeof no);
  ::close(fd);
}

Closer::Closer(std::size_t files, Close close) : state_(std::make_shared<State>(files, close)) {
  add_thread(state_);
}

Closer::~Closer() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->more.notify_all();
  state_->rest.notify_all();
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
  return user.files.behind > state_->room && user.files.busy >= kMostOfOne;
}

bool Closer::done(unsigned milliseconds) const {
  std::unique_lock lock(state_->mutex);
  return state_->less.wait_for(lock, std::chrono::milliseconds(milliseconds),
                               [this] { return state_->waiting == 0 && state_->busy == 0; });
}

// REQUIRES: no other thread uses the state, or its mutex is held. Where a thread cannot be had the others have to do.
void Closer::add_thread(const std::shared_ptr<State>& state) {
  ++state->threads;
  try {
    std::thread(work, state).detach();
  } catch (const std::exception&) {  // no thread, or no memory for one
    --state->threads;
  }
}

void Closer::work(const std::shared_ptr<State>& state) {
  Interrupter interrupter;
  std::unique_lock lock(state->mutex);
  while (true) {
    state->wait_for_work(lock);
    if (state->ready.empty()) {
      return;
    }
    ++state->working;
    if (state->working == state->threads && state->threads < kMostThreads) {
      add_thread(state);  // in case that this one will be occupied for long
    }
    interrupter.arm();
    do {
      close_next(*state, lock);
    } while (!state->ready.empty() || state->nap(lock));
    interrupter.disarm();
    --state->working;
  }
}

// REQUIRES: a lane is ready.
void Closer::close_next(State& state, std::unique_lock<std::mutex>& lock) {
  std::list<ClosingItem> items = state.take();
  if (!state.ready.empty() && !state.watched) {
    state.more.notify_one();
  }
  lock.unlock();
  for (ClosingItem& item : items) {
    if (item.fd) {
      state.close(item.fd.release());
      --item.account->waiting;
      --item.account->open;
      --item.account->user->open;
      --state.open;
    }
    item.mapping = base::Mapping();
  }
  lock.lock();
  state.closed(items.front());
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
    std::unique_lock lock(state_->mutex);
    std::condition_variable* waiting = state_->add(item_);
    lock.unlock();
    if (waiting != nullptr) {
      waiting->notify_one();
    }
  }
}

}  // namespace fake_device
