// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/network_mail.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

namespace shmem {
namespace {

constexpr std::chrono::milliseconds kPollEach{1};

}  // namespace

Result<std::uint64_t> NetworkMail::begin(const Message& message) {
  if (stopped_) {
    return *stopped_;
  }
  if (message.peer < 0) {
    return fail(std::errc::not_supported,
                fmt::format("shmem: PE {}: in a group with members on several nodes, a message must be received from a "
                            "certain PE, not from any",
                            me_));
  }
  const std::uint64_t tag = group_tags::kMail | static_cast<std::uint32_t>(message.tag);
  return message.way == Message::Way::kSend ? network_.start_send(message.peer, tag, message.data, message.size)
                                            : network_.start_receive(message.peer, tag, message.data, message.size);
}

void NetworkMail::post(const MessagePointer& message) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto request = begin(*message); !request) {
      end(*message, failure_of(*message, request.error()));
    } else {
      under_way_.push_back({message, *request});
      poll();
    }
    if (!under_way_.empty() && !thread_) {
      if (auto started = HelperThread::start([this] { serve(); })) {
        thread_ = *std::move(started);
      }  // else messages make progress in wait() only
    }
  }
  posted_.notify_one();
  announce();
}

/// Once over. `notices`: some have come.
std::optional<Result<void>> NetworkMail::outcome_of(const UnderWay& one, bool notices) {
  const auto done = network_.test(one.request);
  if (!done) {
    return failure_of(*one.message, done.error());
  }
  if (*done) {
    return Result<void>();
  }
  const bool alone = notices && notices_.has_come(one.message->peer);
  if (!alone && Clock::now() < one.message->deadline) {
    return std::nullopt;
  }
  network_.cancel(one.request);
  if (alone) {
    return failure_of(*one.message, fail(std::errc::connection_reset, ""));
  }
  return fail(std::errc::timed_out,
              fmt::format("shmem: PE {}: a message {} PE {} was not completed in time", me_,
                          one.message->way == Message::Way::kSend ? "to" : "from", one.message->peer));
}

/// True if a message is over.
bool NetworkMail::poll() {
  bool any = false;
  const bool notices = !under_way_.empty() && notices_.has_come();
  for (auto one = under_way_.begin(); one != under_way_.end();) {
    const auto outcome = outcome_of(*one, notices);
    if (outcome) {
      end(*one->message, *outcome);
      any = true;
    }
    one = outcome ? under_way_.erase(one) : std::next(one);
  }
  return any;
}

Error NetworkMail::failure_of(const Message& message, const Error& error) {
  if (error.code == std::errc::connection_reset) {
    Error cause = notices_.cause_of(error, message.peer);
    notices_.send(cause);  // a group that has lost a member is over, and others may wait for messages of this one
    return cause;
  }
  if (error.code != std::errc::message_size) {
    return error;
  }
  return fail(std::errc::message_size,
              fmt::format("shmem: PE {}: the message with tag {} from PE {} is not as long as its buffer of {} bytes",
                          me_, message.tag, message.peer, message.size));
}

void NetworkMail::end(Message& message, const Result<void>& outcome) {
  if (!outcome) {
    message.error = outcome.error();
  }
  if (message.done) {
    ended_.push_back(message.done);
  }
  message.over.store(true, std::memory_order_release);  // pairs with those who look without the mutex
}

Result<void> NetworkMail::wait(const MessagePointer& message) {
  constexpr int kLooks = 2000;
  for (int look = 0;; ++look) {
    {
      const std::scoped_lock lock(mutex_);
      if (!message->over.load(std::memory_order_relaxed)) {
        poll();
      }
    }
    announce();
    if (message->over.load(std::memory_order_acquire)) {
      return message->error ? Result<void>(*message->error) : Result<void>();
    }
    if (look < kLooks) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
  }
}

void NetworkMail::serve() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (under_way_.empty()) {
      posted_.wait(lock);
      continue;
    }
    const bool any = poll();
    lock.unlock();
    announce();
    if (!any) {
      network_.sleep(kPollEach);
    }
    lock.lock();
  }
}

void NetworkMail::stop(const Error& why) {
  std::optional<HelperThread> thread;
  {
    const std::scoped_lock lock(mutex_);
    if (stopped_) {
      return;
    }
    stopped_ = why;
    for (const UnderWay& one : under_way_) {
      network_.cancel(one.request);
      end(*one.message, why);
    }
    under_way_.clear();
    thread = std::exchange(thread_, std::nullopt);
  }
  posted_.notify_all();
  thread.reset();  // it sleeps for a moment at most
  announce();
}

void NetworkMail::announce() {
  std::vector<std::function<void()>> ended;
  {
    const std::scoped_lock lock(mutex_);
    ended.swap(ended_);
  }
  for (const auto& done : ended) {
    done();
  }
}

}  // namespace shmem
