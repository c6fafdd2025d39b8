// SPDX-License-Identifier: Apache-2.0
#include "base/disposal.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <new>

#include "base/fd.hpp"
#include "base/fd_message.hpp"

namespace base {
namespace {

using Clock = std::chrono::steady_clock;

/// Between two looks for calls that still use one.
constexpr std::chrono::milliseconds kLookAgain{20};
/// If the end of one takes longer, another thread goes on with the rest.
constexpr std::chrono::milliseconds kSlow{100};
/// For the destructor to wait.
constexpr std::chrono::milliseconds kDisposalMoment{200};
/// Among ordinary processes far fewer wait at a time: each is over at once.
constexpr std::size_t kManyToDispose = 64;

using DisposalList = std::list<std::shared_ptr<const void>>;

}  // namespace

struct Disposal::Queue : std::enable_shared_from_this<Queue> {
  struct Thread {
    HelperThread handle;
    bool runs = false;
  };

  std::mutex mutex;  // for the rest
  std::condition_variable changed;
  DisposalList used;
  bool stop = false;       // end when nothing is left
  bool abandoned = false;  // no destructor joins threads any more
  std::size_t size = 0;    // of `used`, and what threads end

  // One thread ends one thing after the other. If one takes long, another thread takes over.
  std::array<Thread, kMostSlowEnds> threads;
  std::size_t at_work = 0;  // threads from which no other one has taken over
  bool ends_one = false;    // one of those does
  std::uint64_t begun = 0;  // ends: the number of that one
  Clock::time_point since;  // when it began

  // The rest REQUIRE: mutex is held.
  void run(Thread& self);
  bool end_one(DisposalList::iterator unused, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::size_t wanted_threads() const {
    return std::min<std::size_t>(used.size() + (ends_one ? 1 : 0), 2);
  }
  void start_threads() noexcept;
};

Disposal::Disposal() : queue_(std::make_shared<Queue>()) {}

Disposal::~Disposal() {
  if (fork_ != forks()) {
    return;  // a thread of the parent may hold the mutex
  }
  std::unique_lock lock(queue_->mutex);
  queue_->stop = true;
  queue_->changed.notify_all();
  queue_->changed.wait_for(lock, kDisposalMoment, [this] {
    return std::none_of(queue_->threads.begin(), queue_->threads.end(), [](const auto& one) { return one.runs; });
  });
  queue_->abandoned = true;
  for (auto& thread : queue_->threads) {
    if (thread.runs) {
      thread.handle.abandon();
    }
    thread.handle.join();
  }
}

void Disposal::add(std::shared_ptr<const void> used) noexcept try {
  DisposalList one{std::move(used)};
  const std::lock_guard lock(queue_->mutex);
  queue_->used.splice(queue_->used.end(), one);
  ++queue_->size;
  queue_->changed.notify_all();
  queue_->start_threads();
} catch (const std::bad_alloc&) {
  // It ends here, or with the last call that uses it.
}

bool Disposal::is_behind() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->size >= kManyToDispose;
}

/// Shuts a socket. True: nothing is in it, and nothing can come any more; this is not known of SOCK_STREAM.
bool Disposal::empty_socket(int socket) noexcept {
  ::shutdown(socket, SHUT_RDWR);
  bool has_connections = true;  // that could not be accepted
  while (!is_behind()) {
    UniqueFd client(retry([socket] { return ::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
    if (!client) {
      has_connections = errno != EAGAIN && errno != EINVAL && errno != EOPNOTSUPP;
      break;
    }
    close_socket(std::move(client));
  }
  const int on = 1;
  // With this, the kernel tells each message, also an empty one, from the end: it has control data.
  if (has_connections || ::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return false;
  }
  FdMessage<1> unread(nullptr, 0);
  ssize_t got = -1;
  do {
    got = unread.receive(socket, MSG_DONTWAIT | MSG_PEEK, false);
  } while (got < 0 && errno == ECONNRESET);  // told once, before the messages
  return got < 0 ? errno == EAGAIN || errno == ENOTCONN || errno == EINVAL
                 : got == 0 && (unread.header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0;
}

/// Without a thread, the destructor ends things, or the thread that starts with a later one.
void Disposal::Queue::start_threads() noexcept try {
  for (Thread& thread : threads) {
    if (at_work >= wanted_threads()) {
      return;
    }
    if (thread.runs) {
      continue;
    }
    auto started = HelperThread::start([queue = shared_from_this(), &thread] { queue->run(thread); });
    if (!started) {
      return;
    }
    thread.handle.join();  // the one before has ended
    thread.handle = *std::move(started);
    if (abandoned) {
      thread.handle.abandon();
    }
    thread.runs = true;
    ++at_work;
  }
} catch (const std::bad_alloc&) {
  // As without a thread.
}

void Disposal::Queue::run(Thread& self) {
  std::unique_lock lock(mutex);
  bool is_at_work = true;
  while (is_at_work && (!stop || !used.empty())) {
    const bool is_left_to_another = ends_one && Clock::now() < since + kSlow;
    const auto unused = is_left_to_another ? used.end() : std::find_if(used.begin(), used.end(), [](const auto& one) {
      return one.use_count() == 1;
    });
    if (unused != used.end()) {
      is_at_work = end_one(unused, lock);
    } else if (!used.empty()) {
      changed.wait_until(lock, is_left_to_another ? since + kSlow : Clock::now() + kLookAgain);
    } else if (ends_one || at_work == 1) {
      changed.wait(lock);
    } else {
      break;  // one thread is enough
    }
  }
  at_work -= is_at_work ? 1 : 0;
  self.runs = false;
  changed.notify_all();
}

/// False: another thread has taken over, and this one is not needed any more.
bool Disposal::Queue::end_one(DisposalList::iterator unused, std::unique_lock<std::mutex>& lock) {
  DisposalList ended;
  ended.splice(ended.end(), used, unused);
  at_work -= ends_one ? 1 : 0;  // the thread from which this one takes over
  ends_one = true;
  since = Clock::now();
  const std::uint64_t mine = ++begun;
  start_threads();
  lock.unlock();
  ended.clear();
  lock.lock();
  --size;
  changed.notify_all();
  if (begun == mine) {
    ends_one = false;
    return true;
  }
  const bool is_needed = at_work < wanted_threads();
  at_work += is_needed ? 1 : 0;
  return is_needed;
}

}  // namespace base
