// SPDX-License-Identifier: Apache-2.0
// Messages between two members of a group on one node, matched by tag, through rings in shared memory. Of a long
// message only the place goes through the ring, if its receiver can copy it from there.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/helper_thread.hpp"
#include "shmem/group/message.hpp"
#include "shmem/group/message_places.hpp"
#include "shmem/layout/job.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// What the receiver of a typed message tells its sender.
struct MailAnswer {
  std::uint64_t number;  // Head::number
  MessageEnd end;        // of the receiver
};
/// Bytes on their way from one member to one other: a stream of messages. Both numbers only grow.
struct MailRing {
  static constexpr std::size_t kRoom = std::size_t{128} << 10;
  static constexpr std::size_t kAnswers = 64;
  alignas(64) std::atomic<std::uint64_t> written;  // by the sender
  alignas(64) std::atomic<std::uint64_t> taken;    // by the receiver
  std::atomic<Reads> reads;                        // by the receiver: whether it can read the sender's memory
  alignas(64) std::atomic<bool> withdrawn;         // by the sender: the message that it shows is not there any more
  alignas(64) std::array<std::byte, kRoom> data;
  // The receiver's answers to typed messages of this ring. Both numbers only grow.
  alignas(64) std::atomic<std::uint64_t> answered;  // by the receiver
  std::array<MailAnswer, kAnswers> answers;
  alignas(64) std::atomic<std::uint64_t> heard;  // by the sender, as the next
  std::atomic<std::uint64_t> awaits;             // answers: messages that it has begun, and has not given up
};
/// At the beginning of a member's mail in its heap; a ring from each member follows.
struct alignas(64) MailDoorbell {
  SyncWord rung;  // changes when another member has written to a ring of this one, or taken from one that it writes to
  std::atomic<std::uint64_t> proof;  // MessagePlaces
};

/// One member's mail. Thread-safe. A message makes progress while any thread of this process waits for one, and else by
/// a thread that exists from the first message on that was not over at once.
class Mail {
 public:
  /// Bytes of each member's heap.
  static std::size_t size_for(int members) {
    return sizeof(MailDoorbell) + static_cast<std::size_t>(members) * sizeof(MailRing);
  }
  /// Any thread calls these.
  struct Hooks {
    std::function<void(const Error&)> lost;  // a member has died, or there is no memory for its messages: needs none
    std::function<std::optional<std::string>()> given_up;  // why a member has given the group up
  };
  /// `offset`: in the heap of each member on this node.
  Mail(const Job& job, std::size_t offset, const SymmetricMemories& memories, Hooks hooks);
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;
  ~Mail() { stop(); }
  /// Messages that are not over fail. REQUIRES: no later post().
  void stop();

  /// Begins a message. REQUIRES: the peer is a member on this node, or -1 to receive.
  void post(const MessagePointer& message);
  /// Gives up a message of any member that is not over: a member of another node has sent it. False: one of this node
  /// has, or it is over.
  bool withdraw(const MessagePointer& message);
  /// Until it is over. Returns its Error.
  Result<void> wait(const MessagePointer& message);
  /// Moves messages on without waiting.
  void look();
  /// Messages that this member has copied from the sender's buffer.
  std::uint64_t direct_messages();

 private:
  /// What precedes the bytes of a message in a ring.
  struct Head {
    std::uint64_t size;
    std::int32_t tag;
    std::uint32_t type;
    std::uint64_t number;  // of a typed message, counted by its sender for each receiver: it awaits an answer
    MessagePlace place;
  };
  /// A message that came before it was asked for.
  struct Early {
    Head head{};
    std::vector<std::byte> data;
    std::size_t have = 0;
  };
  struct Unanswered {
    std::uint64_t number;
    MessagePointer message;
  };
  /// A typed message that has come. It is over when its sender can hear the answer, even if this process then ends.
  struct Answer {
    MailAnswer answer;
    MessagePointer message;  // nullptr: it is over, and only the answer is left
    ErrorPointer difference;
  };
  /// The streams from and to one member.
  struct Peer {
    std::deque<MessagePointer> sends;
    std::size_t sent = 0;                      // bytes of the first one, with its Head
    std::optional<std::uint64_t> direct_head;  // the receiver copies it: over when all up to here has been taken
    std::uint64_t typed = 0;                   // messages sent
    std::deque<Unanswered> unanswered;         // all of it has been sent
    std::deque<Answer> answers;                // to this member, for which its ring has had no room
    std::list<Early> early;
    // The message that is coming in.
    std::optional<Head> head;
    MessagePointer taker;  // nullptr: it goes to the last of `early`
    std::size_t have = 0;
  };

  [[nodiscard]] MailDoorbell& doorbell(int member) const;
  [[nodiscard]] MailRing& ring(int from, int to) const;
  void ring_doorbell(int member) const;

  // Under mutex_.
  void advance();
  void move_all();
  bool push(int member);
  bool push_some(Peer& peer, MailRing& to, GroupMessage& message, std::uint64_t taken);
  MessagePlace place_of(const GroupMessage& message, const MailRing& to) const;
  bool pull(int member);
  bool begin_message(int member, const Head& head);
  bool take_place(int member, const Head& head);
  bool take_early(const MessagePointer& message);
  void found_peer(GroupMessage& message, int member) const;
  void end_received(const MessagePointer& message, const Head& head);
  bool tell_answers(int member);
  bool expire_received(const MessagePointer& message);
  bool hear_answers(int member);
  void match(int member);
  void end(const MessagePointer& message, const ErrorPointer& error = nullptr);
  void end_all(const ErrorPointer& error);
  template <typename Work>
  void with_memory(Work work);
  void end_without_memory();
  void withdraw_all();
  [[nodiscard]] bool wants_from(int member) const;
  [[nodiscard]] bool all_others_have_left() const;
  bool end_with_group();
  void check();
  void check_peers();
  void end_without(int member);
  [[nodiscard]] bool awaits(int member) const;
  void expire(const MessagePointer& message);
  [[nodiscard]] bool is_pending() const { return pending_ != 0; }

  /// Calls what end() has kept, without locks.
  void announce();
  void start_thread();
  void rest(std::unique_lock<std::mutex>& lock);
  void step(std::unique_lock<std::mutex>& lock, std::uint64_t seen);
  void serve();

  const Job& job_;
  const std::size_t offset_;
  MessagePlaces places_;  // under mutex_
  const Hooks hooks_;
  const WaitPolicy policy_;       // without the network, which goes when the group fails
  const ErrorPointer destroyed_;  // made beforehand, as the next
  const ErrorPointer no_memory_;

  std::mutex mutex_;
  std::condition_variable posted_;
  int waiters_ = 0;    // threads in wait(), which do the thread's work
  bool naps_ = false;  // the thread looks by itself from time to time
  std::vector<Peer> peers_;
  std::list<MessagePointer> receives_;  // in the order in which they were posted
  EndedMessages ended_;
  ErrorPointer failed_;  // a member has died, or a stream has broken off
  std::size_t pending_ = 0;
  std::uint64_t direct_messages_ = 0;
  Clock::time_point next_look_{};
  bool stopping_ = false;
  std::optional<base::HelperThread> thread_;
};

}  // namespace shmem
