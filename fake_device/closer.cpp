// SPDX-License-Identifier: Apache-2.0
#include "fake_device/closer.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "uapi/gba_regs.h"

namespace fake_device {
namespace {

// For descriptors of messages that are refused.
constexpr std::size_t kReserve = 2 * Closer::kMostAtOnce;
// The server's own: two memory files and a kick for each client, and what it needs for itself.
constexpr std::size_t kOwn = std::size_t{3} * GBA_MAX_MEMBERS + kReserve;

}  // namespace

struct Closer::State {
  State(std::size_t files, Close how)
      : limit(std::max(files / 2, files - std::min(files, kOwn + kReserve))),
        end(limit + std::min(kReserve, (files - limit) / 2)),
        close(how) {}

  const std::size_t limit;
  const std::size_t end;
  const Close close;
  std::atomic<std::size_t> open = 0;
  std::mutex mutex;
  std::condition_variable more;
  std::condition_variable less;
  std::list<Item> queue;
  std::size_t busy = 0;
  unsigned threads = 0;
  unsigned idle = 0;
  bool stop = false;
};

std::size_t Closer::open_file_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// A socket that is told not to linger does not occupy a thread.
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
}

bool Closer::full() const {
  return state_->open >= state_->limit;
}

bool Closer::exhausted() const {
  return state_->open >= state_->end;
}

bool Closer::done(unsigned milliseconds) const {
  std::unique_lock lock(state_->mutex);
  return state_->less.wait_for(lock, std::chrono::milliseconds(milliseconds),
                               [this] { return state_->queue.empty() && state_->busy == 0; });
}

// REQUIRES: no other thread uses the state, or its mutex is held. Where a thread cannot be had the others have to do.
void Closer::add_thread(const std::shared_ptr<State>& state) {
  ++state->threads;
  ++state->idle;
  try {
    std::thread(work, state).detach();
  } catch (const std::exception&) {  // no thread, or no memory for one
    --state->threads;
    --state->idle;
  }
}

void Closer::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->more.wait(lock, [&] { return state->stop || !state->queue.empty(); });
    if (state->queue.empty()) {
      return;
    }
    --state->idle;
    ++state->busy;
    if (state->idle == 0 && state->threads < kMostThreads) {
      add_thread(state);  // in case that this one will be occupied for long
    }
    {
      std::list<Item> item;
      item.splice(item.begin(), state->queue, state->queue.begin());
      lock.unlock();
      if (item.front().fd) {
        state->close(item.front().fd.release());
        --item.front().account->open;
        --state->open;
      }
    }
    lock.lock();
    --state->busy;
    ++state->idle;
    state->less.notify_all();
  }
}

Given::Given(Closer& closer, std::shared_ptr<FdAccount> account, base::UniqueFd fd) : state_(closer.state_) {
  ++account->open;
  ++state_->open;
  item_.push_back({.fd = std::move(fd), .mapping = {}, .account = std::move(account)});
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
    const std::lock_guard lock(state_->mutex);
    state_->queue.splice(state_->queue.end(), item_);
    state_->more.notify_one();
  }
}

}  // namespace fake_device
