// SPDX-License-Identifier: Apache-2.0
// Messages between two members of a group on different nodes, matched by tag, through the network.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>

#include "base/helper_thread.hpp"
#include "shmem/group/mail.hpp"
#include "shmem/group/notices.hpp"
#include "shmem/net/network.hpp"

namespace shmem {

/// One member's end. Thread-safe. Messages make progress by a thread that exists from the first message on that was not
/// over at once, and while any thread waits for one.
class NetworkMail {
 public:
  /// `network` and `notices` outlive stop(); `here`, which has the messages of members on this node, outlives this.
  NetworkMail(Network& network, Notices& notices, Mail& here, int me, int members);
  NetworkMail(const NetworkMail&) = delete;
  NetworkMail& operator=(const NetworkMail&) = delete;
  ~NetworkMail() { stop(destroyed_); }

  /// Begins a message. One of any member is also begun in Mail: it is the network's once a member of another node has
  /// sent one.
  void post(const MessagePointer& message);
  /// Until it is over. Returns its Error.
  Result<void> wait(const MessagePointer& message);
  /// Messages that are not over fail, as do all later ones. Any thread.
  void fail_all(const ErrorPointer& why);
  /// The same. Waits a moment for answers that have not left. From then on
  /// this does not use the network.
  void stop(const ErrorPointer& why);

 private:
  /// A message and what belongs to it: the sender of a typed message receives an answer, the receiver sends it.
  struct UnderWay {
    MessagePointer message;  // nullptr: it is over, and only the answer is left
    bool shared = false;     // Mail has it as well: it is of any member
    std::optional<std::uint64_t> request{};
    std::optional<std::uint64_t> answer_request{};
    Arrival arrival{};     // to a receiver
    MessageEnd answer{};   // the receiver's end
    bool answers = false;  // this is the receiver, and answer_request its send
  };

  // Under mutex_.
  Result<void> begin(UnderWay& one);
  Result<void> begin_send(UnderWay& one);
  [[nodiscard]] std::optional<int> sender_of(const GroupMessage& message);
  std::optional<Result<void>> look_for_any(UnderWay& one, bool notices);
  bool poll();
  std::optional<Result<void>> outcome_of(UnderWay& one, bool notices);
  /// A message of any member leaves Mail, or is its own.
  void take_back(UnderWay& one);
  /// True or an Error: all requests are over.
  Result<bool> test(UnderWay& one);
  void give_up(UnderWay& one);
  Result<void> compare(UnderWay& one);
  void send_answer(UnderWay& one);
  [[nodiscard]] bool has_unsent_answers() const;
  /// The Error of a message. The others are told of a member that is lost.
  Error failure_of(const GroupMessage& message, const Error& error);
  void end(const MessagePointer& message, const ErrorPointer& error);
  void end_all(const ErrorPointer& error);
  template <typename Work>
  bool with_memory(Work work);

  void serve();
  /// Calls what end() has kept, without locks.
  void announce();

  Network& network_;
  Notices& notices_;
  Mail& here_;
  const int me_;
  const int members_;
  const ErrorPointer destroyed_;  // made beforehand, as the next
  const ErrorPointer no_memory_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::list<UnderWay> under_way_;
  EndedMessages ended_;
  ErrorPointer stopped_;
  std::optional<base::HelperThread> thread_;
};

}  // namespace shmem
