// SPDX-License-Identifier: Apache-2.0
#include "shmem/group/network_mail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

namespace shmem {
namespace {

constexpr std::chrono::milliseconds kPollEach{1};
/// How long the answer to a message may take to leave once the group is destroyed: its first message to a PE waits for
/// the connection.
constexpr std::chrono::milliseconds kAnswerLimit{500};

// The type of a message is a part of its tag, which its receiver does not match.
constexpr int kTypeShift = 32;
constexpr std::uint64_t kTypeBits = std::uint64_t{MessageEnd::kMostType} << kTypeShift;
static_assert((kTypeBits & (group_tags::kMail | group_tags::kNotice)) == 0);

std::uint64_t tag_of(const GroupMessage& message) {
  return group_tags::kMail | static_cast<std::uint32_t>(message.tag);
}

std::uint64_t answer_tag_of(const GroupMessage& message) {
  return tag_of(message) | group_tags::kNotice;
}

}  // namespace

NetworkMail::NetworkMail(Network& network, Notices& notices, Mail& here, int me, int members)
    : network_(network),
      notices_(notices),
      here_(here),
      me_(me),
      members_(members),
      destroyed_(std::make_shared<const Error>(
          fail(std::errc::operation_canceled, "shmem: the group was destroyed before the message was over"))),
      no_memory_(std::make_shared<const Error>(
          fail(std::errc::not_enough_memory,
               fmt::format("shmem: PE {}: there is no memory for the messages of the group", me)))) {}

Result<void> NetworkMail::begin(UnderWay& one) {
  const GroupMessage& message = *one.message;
  if (one.shared) {
    return {};  // see look_for_any
  }
  if (stopped_) {
    return *stopped_;
  }
  if (message.way == GroupMessage::Way::kSend) {
    return begin_send(one);
  }
  const auto request =
      network_.start_receive_any(message.peer, {tag_of(message), ~kTypeBits}, message.data, message.size, one.arrival);
  if (!request) {
    return request.error();
  }
  one.request = *request;
  return {};
}

/// The first member of another node that has sent such a message.
std::optional<int> NetworkMail::sender_of(const GroupMessage& message) {
  const TagPattern tags{tag_of(message), ~kTypeBits};
  network_.advance();  // as test() does for those that have begun
  if (!network_.has_come(tags)) {
    return std::nullopt;
  }
  for (int member = 0; member < members_; ++member) {
    if (member != me_ && network_.has_come_from(member, tags)) {
      return member;
    }
  }
  return std::nullopt;
}

void NetworkMail::take_back(UnderWay& one) {
  if (one.shared && !here_.withdraw(one.message)) {
    one.message = nullptr;
  }
  one.shared = false;
}

/// A receive from any member becomes one from a member that has sent: only of that UCX says that its sender is lost.
/// Its limit is Mail's matter until then.
std::optional<Result<void>> NetworkMail::look_for_any(UnderWay& one, bool notices) {
  const auto sender = sender_of(*one.message);
  const auto lost = sender ? std::nullopt : network_.lost();
  const bool is_over = one.message->over.load(std::memory_order_acquire);  // pairs with Mail::end()
  if (!sender && !lost && !notices && !is_over) {
    return std::nullopt;
  }
  take_back(one);
  if (!one.message) {
    return std::nullopt;
  }
  if (!sender) {
    return failure_of(*one.message, lost.value_or(fail(std::errc::connection_reset, "")));
  }
  one.message->peer = *sender;
  const auto ok = begin(one);
  return ok ? std::nullopt : std::optional<Result<void>>(failure_of(*one.message, ok.error()));
}

/// Answers to messages of one tag come in the order of these messages.
Result<void> NetworkMail::begin_send(UnderWay& one) {
  const GroupMessage& message = *one.message;
  if (message.awaits_answer()) {
    const auto answer = network_.start_receive(message.peer, answer_tag_of(message), &one.answer, sizeof one.answer);
    if (!answer) {
      return answer.error();
    }
    one.answer_request = *answer;
  }
  const std::uint64_t tag = tag_of(message) | std::uint64_t{message.type} << kTypeShift;
  const auto request = network_.start_send(message.peer, tag, message.data, message.size);
  if (!request) {
    if (one.answer_request) {
      network_.cancel(*std::exchange(one.answer_request, std::nullopt));
    }
    return request.error();
  }
  one.request = *request;
  return {};
}

void NetworkMail::post(const MessagePointer& message) {
  std::list<UnderWay> added;
  UnderWay& one = added.emplace_back(UnderWay{message});  // UCX keeps its address
  message->by_network = true;
  one.shared = message->peer < 0;
  if (one.shared) {
    here_.post(message);  // without the mutex: it may call `done`
  }
  {
    const std::scoped_lock lock(mutex_);
    with_memory([this] { poll(); });  // a message that has come is that of an earlier receive from any member
    under_way_.splice(under_way_.end(), added);
    with_memory([&] {
      if (const auto ok = begin(one); !ok) {
        const auto why = std::make_shared<const Error>(failure_of(*message, ok.error()));
        end(std::exchange(one.message, nullptr), why);
      }
      poll();
      if (!under_way_.empty() && !thread_ && !stopped_) {
        if (auto started = base::HelperThread::start([this] { serve(); })) {
          thread_ = *std::move(started);
        }  // else messages make progress in wait() only
      }
    });
  }
  posted_.notify_one();
  announce();
}

Result<bool> NetworkMail::test(UnderWay& one) {
  for (auto* const request : {&one.request, &one.answer_request}) {
    if (!*request) {
      continue;
    }
    const auto done = network_.test(**request);
    if (done && !*done) {
      return false;
    }
    request->reset();
    if (!done) {
      return done.error();
    }
  }
  return true;
}

/// Once over. `notices`: some have come.
std::optional<Result<void>> NetworkMail::outcome_of(UnderWay& one, bool notices) {
  if (one.shared) {
    if (auto failed = look_for_any(one, notices); failed || one.shared || !one.message) {
      return failed;
    }
  }
  const auto done = test(one);
  if (!done && done.error().code != std::errc::message_size) {
    give_up(one);
    return failure_of(*one.message, done.error());
  }
  if (!done || *done) {
    return compare(one);
  }
  const bool alone = notices && notices_.has_come(one.message->peer);
  if (!alone && Clock::now() < one.message->deadline) {
    return std::nullopt;
  }
  // The answer stays awaited: it would else be taken for that to a later message.
  if (one.request) {
    network_.cancel(*std::exchange(one.request, std::nullopt));
  }
  if (alone) {
    return failure_of(*one.message, fail(std::errc::connection_reset, ""));
  }
  return fail(std::errc::timed_out,
              fmt::format("shmem: PE {}: a message {} PE {} was not completed in time", me_,
                          one.message->way == GroupMessage::Way::kSend ? "to" : "from", one.message->peer));
}

void NetworkMail::give_up(UnderWay& one) {
  for (auto* const request : {&one.request, &one.answer_request}) {
    if (*request) {
      network_.cancel(*std::exchange(*request, std::nullopt));
    }
  }
}

/// A message that has come, and has been answered if it shall be.
Result<void> NetworkMail::compare(UnderWay& one) {
  GroupMessage& message = *one.message;
  MessageEnd other = one.answer;
  if (message.way == GroupMessage::Way::kReceive) {
    other = {one.arrival.bytes, static_cast<std::uint32_t>((one.arrival.tag & kTypeBits) >> kTypeShift)};
    if (other.type != 0) {
      send_answer(one);
    }
  } else if (!message.awaits_answer()) {
    return {};
  }
  const auto difference = compare_ends(me_, message, other);
  return difference ? Result<void>(*difference) : Result<void>();
}

/// If that fails, the sender is lost, which later calls will find.
void NetworkMail::send_answer(UnderWay& one) {
  one.answer = {one.message->size, one.message->type};
  const auto request =
      network_.start_send(one.message->peer, answer_tag_of(*one.message), &one.answer, sizeof one.answer);
  if (request) {
    one.answer_request = *request;
    one.answers = true;
  }
}

bool NetworkMail::has_unsent_answers() const {
  return std::any_of(under_way_.begin(), under_way_.end(),
                     [](const UnderWay& one) { return !one.message && one.answers; });
}

/// True if a message is over.
bool NetworkMail::poll() {
  bool any = false;
  const bool notices = !under_way_.empty() && notices_.has_come();
  for (auto one = under_way_.begin(); one != under_way_.end();) {
    if (one->message) {
      if (const auto outcome = outcome_of(*one, notices)) {
        const auto error = *outcome ? nullptr : std::make_shared<const Error>(outcome->error());
        end(std::exchange(one->message, nullptr), error);
        any = true;
      }
    }
    bool over = false;
    if (!one->message) {
      const auto done = test(*one);
      over = !done || *done;
    }
    one = over ? under_way_.erase(one) : std::next(one);
  }
  return any;
}

Error NetworkMail::failure_of(const GroupMessage& message, const Error& error) {
  if (error.code == std::errc::connection_reset) {
    Error cause = notices_.cause_of(error, message.peer);
    notices_.send(cause);  // a group that has lost a member is over, and others may wait for messages of this one
    return cause;
  }
  return error;
}

void NetworkMail::end(const MessagePointer& message, const ErrorPointer& error) {
  message->error = error;
  if (message->done) {
    ended_.add(message);
  }
  message->over.store(true, std::memory_order_release);  // pairs with those who look without the mutex
}

/// Needs no memory.
void NetworkMail::end_all(const ErrorPointer& error) {
  stopped_ = error;
  for (UnderWay& one : under_way_) {
    give_up(one);
    take_back(one);
    if (one.message) {
      end(one.message, error);
    }
  }
  under_way_.clear();
}

/// Does some work, on any thread. False: there was no memory for it, and all messages have failed.
template <typename Work>
bool NetworkMail::with_memory(Work work) {
  if (stopped_) {
    end_all(stopped_);
    return false;
  }
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    end_all(no_memory_);
  }
  try {
    notices_.send(*no_memory_);
  } catch (const std::bad_alloc&) {
    // The others find out when this member closes its connections, or time out.
  }
  return false;
}

Result<void> NetworkMail::wait(const MessagePointer& message) {
  constexpr int kLooks = 2000;
  for (int look = 0;; ++look) {
    {
      const std::scoped_lock lock(mutex_);
      if (!message->over.load(std::memory_order_relaxed)) {
        with_memory([this] { poll(); });
      }
    }
    announce();
    if (message->over.load(std::memory_order_acquire)) {
      return message->error ? Result<void>(*message->error) : Result<void>();
    }
    if (look < kLooks) {
      std::this_thread::yield();
    } else {
      here_.look();  // for a message of any member, if Mail has no thread
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
    bool any = false;
    with_memory([&] { any = poll(); });
    lock.unlock();
    announce();
    if (!any) {
      network_.sleep(kPollEach);
    }
    lock.lock();
  }
}

void NetworkMail::fail_all(const ErrorPointer& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (!stopped_) {
      end_all(why);
    }
  }
  posted_.notify_all();
  announce();
}

void NetworkMail::stop(const ErrorPointer& why) {
  std::optional<base::HelperThread> thread;
  {
    std::unique_lock lock(mutex_);
    const auto deadline = Clock::now() + kAnswerLimit;
    while (!stopped_ && with_memory([this] { poll(); }) && has_unsent_answers() && Clock::now() < deadline) {
      lock.unlock();
      network_.sleep(kPollEach);
      lock.lock();
    }
    if (!stopped_) {
      end_all(why);
    }
    thread = std::exchange(thread_, std::nullopt);
  }
  posted_.notify_all();
  thread.reset();  // it sleeps for a moment at most
  announce();
}

void NetworkMail::announce() {
  std::unique_lock lock(mutex_);
  EndedMessages ended(std::move(ended_));
  lock.unlock();
  ended.call_all();
}

}  // namespace shmem
