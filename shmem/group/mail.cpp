// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/mail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "shmem/layout/leave.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/memory/ordering.hpp"

namespace shmem {
namespace {

constexpr std::chrono::milliseconds kLookEach{500};

WaitPolicy without_network(WaitPolicy policy) {
  policy.background = nullptr;
  return policy;
}

}  // namespace

Mail::Mail(const Job& job, std::size_t offset, const SymmetricMemories& memories, Hooks hooks)
    : job_(job),
      offset_(offset),
      places_(job, memories, doorbell(job.me).proof),
      hooks_(std::move(hooks)),
      policy_(without_network(job.policy)),
      destroyed_(std::make_shared<const Error>(
          fail(std::errc::operation_canceled, "shmem: the group was destroyed before the message was over"))),
      no_memory_(std::make_shared<const Error>(
          fail(std::errc::not_enough_memory,
               fmt::format("shmem: PE {}: there is no memory for the messages of the group", job.world_me())))),
      peers_(static_cast<std::size_t>(job.size)) {}

MailDoorbell& Mail::doorbell(int member) const {
  return *reinterpret_cast<MailDoorbell*>(job_.memory.heap(member) + offset_);
}

MailRing& Mail::ring(int from, int to) const {
  return reinterpret_cast<MailRing*>(job_.memory.heap(to) + offset_ + sizeof(MailDoorbell))[from];
}

void Mail::ring_doorbell(int member) const {
  SyncWord& word = doorbell(member).rung;
  word.value.fetch_add(1, std::memory_order_seq_cst);  // pairs with Waiting: see wake_sleepers
  wake_sleepers(word);
}

void Mail::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    end_all(destroyed_);
  }
  posted_.notify_all();
  ring_doorbell(job_.me);
  thread_.reset();
  announce();
}

void Mail::post(const MessagePointer& message) {
  {
    const std::scoped_lock lock(mutex_);
    message->place = message->peer < 0 ? -1 : job_.nodes.number(message->peer);
    if (message->way == GroupMessage::Way::kSend) {
      peers_[static_cast<std::size_t>(message->place)].sends.push_back(message);
    } else {
      receives_.push_back(message);
    }
    ++pending_;  // from here on it ends, whatever happens
    with_memory([&] {
      if (failed_) {
        end_all(failed_);
        return;
      }
      if (message->way == GroupMessage::Way::kReceive) {
        take_early(message);
      }
      move_all();
      if (is_pending() && !thread_ && !stopping_) {
        start_thread();
      }
    });
    if (is_pending() && !naps_) {
      posted_.notify_one();
    }
  }
  announce();
}

bool Mail::withdraw(const MessagePointer& message) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find(receives_.begin(), receives_.end(), message);
  if (found == receives_.end()) {
    return false;
  }
  receives_.erase(found);
  --pending_;
  return true;
}

void Mail::start_thread() {
  if (auto thread = base::HelperThread::start([this] { serve(); })) {
    thread_ = *std::move(thread);
  }  // else messages make progress in wait() only, until a later one finds a thread
}

Result<void> Mail::wait(const MessagePointer& message) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  // Acquire: pairs with end().
  while (!message->over.load(std::memory_order_acquire)) {
    // Before the look: what is written after it changes the word.
    const std::uint64_t seen = doorbell(job_.me).rung.value.load(std::memory_order_seq_cst);
    advance();
    if (!message->over.load(std::memory_order_relaxed)) {
      step(lock, seen);
    }
  }
  if (--waiters_ == 0 && is_pending() && !naps_) {
    posted_.notify_one();
  }
  lock.unlock();
  announce();
  return message->error ? Result<void>(*message->error) : Result<void>();
}

void Mail::look() {
  {
    const std::scoped_lock lock(mutex_);
    advance();
    with_memory([this] { check(); });
  }
  announce();
}

/// Sleeps until the doorbell has rung, up to the next look, and looks.
void Mail::step(std::unique_lock<std::mutex>& lock, std::uint64_t seen) {
  lock.unlock();
  announce();
  const auto begin = Clock::now();
  // The Check: it is called before each sleep.
  static_cast<void>(wait_on(
      doorbell(job_.me).rung, policy_, [seen](std::uint64_t now) { return now != seen; },
      [&] {
        const bool has_slept = Clock::now() - begin >= std::chrono::milliseconds(50);
        return has_slept || job_.ended() != std::errc{} ? std::errc::interrupted : std::errc{};
      }));
  lock.lock();
  with_memory([this] { check(); });
}

/// Until there is work that no other thread does. A message that its sender or receiver waits for at once, as most are,
/// needs no wake-up of this thread: for a while after the last one it only naps.
void Mail::rest(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::milliseconds kNap{1};
  constexpr int kNaps = 50;
  const auto has_work = [this] { return stopping_ || (is_pending() && waiters_ == 0); };
  naps_ = true;
  for (int nap = 0; nap < kNaps && !has_work(); ++nap) {
    posted_.wait_for(lock, kNap);
  }
  naps_ = false;
  posted_.wait(lock, has_work);
}

void Mail::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    rest(lock);
    if (stopping_) {
      return;
    }
    const std::uint64_t seen = doorbell(job_.me).rung.value.load(std::memory_order_seq_cst);
    advance();
    if (is_pending()) {
      step(lock, seen);
    }
    if (!ended_.empty()) {
      lock.unlock();
      announce();
      lock.lock();
    }
  }
}

std::uint64_t Mail::direct_messages() {
  const std::scoped_lock lock(mutex_);
  return direct_messages_;
}

void Mail::announce() {
  std::unique_lock lock(mutex_);
  EndedMessages ended(std::move(ended_));
  lock.unlock();
  ended.call_all();
}

void Mail::end(const MessagePointer& message, const ErrorPointer& error) {
  message->error = error;
  --pending_;
  if (message->done) {
    ended_.add(message);
  }
  message->over.store(true, std::memory_order_release);  // pairs with wait() and the caller's test
  ring_doorbell(job_.me);                                // another thread may sleep there, waiting for this message
}

namespace {

/// Calls end(one) for each element, which is then gone.
template <typename Queue, typename End>
void drain(Queue& queue, End end) {
  while (!queue.empty()) {
    const auto one = std::move(queue.front());
    queue.pop_front();
    end(one);
  }
}

}  // namespace

/// Needs no memory.
void Mail::end_all(const ErrorPointer& error) {
  failed_ = failed_ ? failed_ : error;
  withdraw_all();
  const auto end_one = [&](const MessagePointer& message) { end(message, error); };
  for (Peer& peer : peers_) {
    drain(peer.sends, end_one);
    drain(peer.unanswered, [&](const Unanswered& one) { end(one.message, error); });
    drain(peer.answers, [&](const Answer& one) {
      if (one.message) {
        end(one.message, one.difference);  // all of it is here
      }
    });
    if (const MessagePointer taker = std::exchange(peer.taker, nullptr); taker) {
      end(taker, error);
    }
  }
  drain(receives_, end_one);
}

/// Does some work, on any thread. Without memory for it, all messages fail: some of one may be lost.
template <typename Work>
void Mail::with_memory(Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (const std::length_error&) {  // a message that is larger than any memory
    end_without_memory();
  }
}

void Mail::end_without_memory() {
  hooks_.lost(*no_memory_);  // first: who finds a message withdrawn finds the reason, too
  end_all(no_memory_);
}

/// The buffers of messages that are not over are the callers' again.
void Mail::withdraw_all() {
  for (int member = 0; member < job_.size; ++member) {
    ring(job_.me, member).awaits.store(0, std::memory_order_relaxed);
    if (peers_[static_cast<std::size_t>(member)].direct_head) {
      ring(job_.me, member).withdrawn.store(true, std::memory_order_release);  // pairs with take_place()
    }
  }
  quiet();  // pairs with after_reads() in take_place(): who has copied what a caller wrote afterwards sees it
}

void Mail::advance() {
  with_memory([this] { move_all(); });
}

void Mail::move_all() {
  for (int member = 0; member < job_.size && !failed_; ++member) {
    bool moved = false;
    // Another member's end of the ring moves on when its doorbell rings; both ends of this member's own are here.
    for (bool again = true; again && !failed_;) {
      again = hear_answers(member);
      again = push(member) || again;
      while (pull(member)) {
        again = true;
      }
      again = tell_answers(member) || again;
      moved = moved || again;
      again = again && member == job_.me;
    }
    if (moved && member != job_.me) {
      ring_doorbell(member);
    }
  }
}

void Mail::expire(const MessagePointer& message) {
  if (expire_received(message)) {
    return;
  }
  const bool sends = message->way == GroupMessage::Way::kSend;
  const auto error = std::make_shared<const Error>(
      fail(std::errc::timed_out,
           fmt::format("shmem: PE {}: {} with tag {} timed out; it waited for {}", job_.world_me(),
                       sends ? "sending a message" : "receiving a message", message->tag,
                       message->place >= 0 ? describe_pe(job_, message->place) : std::string("any PE"))));
  if (sends) {
    auto& unanswered = peers_[static_cast<std::size_t>(message->place)].unanswered;
    // All of it is in the ring, where a later call may receive it.
    if (std::erase_if(unanswered, [&](const Unanswered& one) { return one.message == message; }) != 0) {
      ring(job_.me, message->place).awaits.fetch_sub(1, std::memory_order_relaxed);  // pairs with tell_answers()
      ring_doorbell(message->place);
      end(message, error);
      return;
    }
  }
  if (message->begun) {
    end_all(error);  // the rest of the stream cannot be told apart
    return;
  }
  if (sends) {
    auto& sends_there = peers_[static_cast<std::size_t>(message->place)].sends;
    sends_there.erase(std::find(sends_there.begin(), sends_there.end(), message));
  } else {
    receives_.remove(message);
  }
  end(message, error);
}

/// One that has come, but whose sender does not hear its answer. The answer stays.
bool Mail::expire_received(const MessagePointer& message) {
  if (message->way == GroupMessage::Way::kSend || message->place < 0) {
    return false;
  }
  auto& answers = peers_[static_cast<std::size_t>(message->place)].answers;
  const auto found =
      std::find_if(answers.begin(), answers.end(), [&](const Answer& one) { return one.message == message; });
  if (found == answers.end()) {
    return false;
  }
  found->message = nullptr;
  end(message, found->difference);
  return true;
}

/// True if a member has given up the group.
bool Mail::end_with_group() {
  const auto why = hooks_.given_up();
  if (why) {
    end_all(std::make_shared<const Error>(
        fail(std::errc::operation_canceled,
             fmt::format("shmem: PE {}: a message was given up: {}", job_.world_me(), *why))));
  }
  return why.has_value();
}

void Mail::check() {
  if (failed_ || end_with_group()) {
    return;
  }
  const auto now = Clock::now();
  std::vector<MessagePointer> late;
  const auto collect = [&](const MessagePointer& one) {
    if (now >= one->deadline) {
      late.push_back(one);
    }
  };
  for (const Peer& peer : peers_) {
    std::for_each(peer.sends.begin(), peer.sends.end(), collect);
    for (const Unanswered& one : peer.unanswered) {
      collect(one.message);
    }
    for (const Answer& one : peer.answers) {
      if (one.message) {
        collect(one.message);
      }
    }
    if (peer.taker) {
      collect(peer.taker);
    }
  }
  std::for_each(receives_.begin(), receives_.end(), collect);
  for (const MessagePointer& one : late) {
    if (!one->over.load(std::memory_order_relaxed)) {
      expire(one);
    }
  }
  if (now >= next_look_) {
    next_look_ = now + kLookEach;
    check_peers();
  }
}

/// On several nodes others are left, which are the network's.
bool Mail::all_others_have_left() const {
  if (job_.on_several_nodes()) {
    return false;
  }
  for (int member = 0; member < job_.size; ++member) {
    if (member != job_.me && !has_left(job_, member)) {
      return false;
    }
  }
  return true;
}

/// A message of any member may come of another one than of that which has left, but not of a group that has lost one.
bool Mail::awaits(int member) const {
  const Peer& peer = peers_[static_cast<std::size_t>(member)];
  return !peer.sends.empty() || !peer.unanswered.empty() || peer.taker ||
         std::any_of(peer.answers.begin(), peer.answers.end(),
                     [](const Answer& one) { return one.message != nullptr; }) ||
         std::any_of(receives_.begin(), receives_.end(), [&](const MessagePointer& one) {
           return one->place == member || (one->place < 0 && (!has_left(job_, member) || all_others_have_left()));
         });
}

void Mail::check_peers() {
  for (int member = 0; member < job_.size && !failed_; ++member) {
    if (awaits(member) && member != job_.me && is_dead_or_zombie(job_, member)) {
      end_without(member);
    }
  }
}

/// That member has ended, or has left.
void Mail::end_without(int member) {
  // What it wrote before counts, and what others did that have left since.
  move_all();
  if (!awaits(member)) {
    return;
  }
  const auto error = std::make_shared<const Error>(
      fail(std::errc::owner_dead, fmt::format("shmem: PE {}: a message cannot be completed: it waited for {}",
                                              job_.world_me(), describe_pe(job_, member))));
  hooks_.lost(*error);  // first: who finds a message withdrawn finds the reason, too
  end_all(error);
}

}  // namespace shmem
