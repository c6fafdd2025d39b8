// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/transfers.hpp"

#include <fmt/format.h>

#include <new>

namespace shmem::exchange {

bool Transfer::begin() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kOver) {
    return false;
  }
  state_ = State::kRunning;
  return true;
}

void Transfer::end(Result<void> outcome) {
  const std::lock_guard lock(mutex_);
  outcome_ = std::move(outcome);
  state_ = State::kOver;
  over_.notify_all();
}

void Transfer::cancel() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kWaiting) {
    outcome_ = fail(std::errc::operation_canceled, "shmem: the transfer was cancelled before it began");
    state_ = State::kOver;
    over_.notify_all();
  }
}

void Transfer::finish() {
  cancel();
  std::unique_lock lock(mutex_);
  over_.wait(lock, [&] { return state_ == State::kOver; });
}

std::optional<Result<void>> Transfer::wait(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return state_ == State::kOver; };
  if (!is_over() && !over_.wait_for(lock, limit, is_over)) {
    return std::nullopt;
  }
  return outcome_;
}

Transfers::~Transfers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const auto& transfer : queue_) {
      transfer->cancel();
    }
    changed_.notify_all();
  }
  thread_.join();
}

Result<void> Transfers::add(TransferPointer transfer) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= most_) {
    return fail(
        std::errc::resource_unavailable_try_again,
        fmt::format("shmem: {} transfers wait or run, as many as the options of the exchange allow; wait for one "
                    "of them",
                    most_));
  }
  if (!thread_.runs_here()) {
    auto thread = base::HelperThread::start([this] { run(); });
    if (!thread) {
      return fail(std::errc::resource_unavailable_try_again, thread.error().text);
    }
    thread_ = *std::move(thread);
  }
  queue_.push_back(std::move(transfer));
  changed_.notify_all();
  return {};
}

/// Without memory it is the transfer that fails.
Result<void> Transfers::execute(const Transfer& transfer) const {
  try {
    return execute_(transfer);
  } catch (const std::bad_alloc&) {
    return Error{std::errc::not_enough_memory, "out of memory"};  // short: a string of it allocates nothing
  }
}

void Transfers::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (stop_) {
      return;
    }
    const TransferPointer transfer = queue_.front();
    lock.unlock();
    if (transfer->begin()) {
      transfer->end(execute(*transfer));
    }
    lock.lock();
    queue_.pop_front();
  }
}

}  // namespace shmem::exchange
