// SPDX-License-Identifier: Apache-2.0
// How messages go through the rings: what the sender puts in, and what the receiver takes out.
#include <fmt/format.h>

#include <algorithm>

#include "shmem/group/mail.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/memory/cached_copy.hpp"
#include "shmem/memory/ordering.hpp"

namespace shmem {
namespace {

/// Copies into the ring from position `at` on.
void put(MailRing& ring, std::uint64_t at, const void* from, std::size_t size) {
  const std::size_t begin = at % MailRing::kRoom;
  const std::size_t first = std::min(size, MailRing::kRoom - begin);
  copy_cached(ring.data.data() + begin, from, first);
  copy_cached(ring.data.data(), static_cast<const std::byte*>(from) + first, size - first);
}

void get(const MailRing& ring, std::uint64_t at, void* to, std::size_t size) {
  const std::size_t begin = at % MailRing::kRoom;
  const std::size_t first = std::min(size, MailRing::kRoom - begin);
  copy_cached(to, ring.data.data() + begin, first);
  copy_cached(static_cast<std::byte*>(to) + first, ring.data.data(), size - first);
}

}  // namespace

bool Mail::push(int member) {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  MailRing& to = ring(job_.me, member);
  bool moved = false;
  while (!peer.sends.empty()) {
    const MessagePointer message = peer.sends.front();
    // Acquire: pairs with pull(); what it has taken, and copied, has been read.
    const std::uint64_t taken = to.taken.load(std::memory_order_acquire);
    if (!peer.direct_head && push_some(peer, to, *message, taken)) {
      moved = true;
    }
    const bool over = peer.direct_head ? taken >= *peer.direct_head : peer.sent == sizeof(Head) + message->size;
    if (!over) {
      break;
    }
    if (message->awaits_answer()) {
      peer.unanswered.push_back({peer.typed, message});  // before it is in no list any more: this may need memory
    }
    peer.direct_head.reset();
    peer.sent = 0;
    peer.sends.pop_front();
    if (!message->awaits_answer()) {
      end(message);
    }
  }
  return moved;
}

/// As much as there is room for, from the Head on. False: nothing.
bool Mail::push_some(Peer& peer, MailRing& to, GroupMessage& message, std::uint64_t taken) {
  std::uint64_t written = to.written.load(std::memory_order_relaxed);  // only this process writes it
  const std::uint64_t before = written;
  const std::uint64_t end = taken + MailRing::kRoom;
  if (peer.sent == 0) {
    if (end - written < sizeof(Head)) {
      return false;
    }
    if (message.awaits_answer()) {
      ++peer.typed;
      to.awaits.fetch_add(1, std::memory_order_relaxed);  // seen by who sees the message: tell_answers()
    }
    const Head head{message.size, message.tag, message.type, peer.typed, place_of(message, to)};
    put(to, written, &head, sizeof head);
    message.begun = true;
    written += sizeof head;
    peer.sent = sizeof head;
    if (!head.place.is_inline()) {
      peer.direct_head = written;
    }
  }
  if (!peer.direct_head) {
    const std::size_t at = peer.sent - sizeof(Head);
    const std::size_t part = std::min<std::size_t>(end - written, message.size - at);
    if (part != 0) {
      put(to, written, message.data + at, part);
    }
    written += part;
    peer.sent += part;
  }
  to.written.store(written, std::memory_order_release);  // pairs with pull()
  return written != before;
}

/// A short message without a type is over when it is in the ring, whether anybody has asked for it or not; one that is
/// longer than the ring waits for its receiver in any case.
MessagePlace Mail::place_of(const GroupMessage& message, const MailRing& to) const {
  const bool is_long = message.size > MailRing::kRoom;
  // Relaxed: only a hint. A message to this member itself can be copied by it only from symmetric memory.
  const Reads reads = message.place == job_.me ? Reads::kNo : to.reads.load(std::memory_order_relaxed);
  return is_long ? places_.place_of(message.data, message.size, reads) : MessagePlace();
}

bool Mail::wants_from(int member) const {
  return std::any_of(receives_.begin(), receives_.end(),
                     [member](const MessagePointer& one) { return one->place == member || one->place < 0; });
}

bool Mail::pull(int member) {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  // Without a receiver nothing is taken: the sender waits, unless a message is already coming in.
  if (!peer.head && !wants_from(member)) {
    return false;
  }
  MailRing& from = ring(member, job_.me);
  const std::uint64_t taken = from.taken.load(std::memory_order_relaxed);  // only this process writes it
  // Acquire: pairs with push().
  const std::size_t there = from.written.load(std::memory_order_acquire) - taken;
  if (!peer.head) {
    Head head{};
    if (there < sizeof head) {
      return false;
    }
    get(from, taken, &head, sizeof head);
    begin_message(member, head);
    peer.head = head;
    peer.have = 0;
    if (!take_place(member, head)) {
      return false;
    }
    from.taken.store(taken + sizeof head, std::memory_order_release);  // pairs with push()
  } else if (there != 0) {
    const std::size_t part = std::min<std::size_t>(there, peer.head->size - peer.have);
    std::byte* const to = peer.taker ? peer.taker->data : peer.early.back().data.data();
    if (part != 0) {
      get(from, taken, to + peer.have, part);
    }
    peer.have += part;
    from.taken.store(taken + part, std::memory_order_release);
  } else if (peer.have != peer.head->size) {
    return false;
  }
  if (peer.have == peer.head->size) {
    const bool taken_by_call = peer.taker != nullptr;
    if (taken_by_call) {
      end_received(peer.taker, *peer.head);  // before it is in no list any more: this may need memory
    }
    peer.taker = nullptr;
    peer.head.reset();
    if (!taken_by_call) {
      peer.early.back().have = peer.early.back().data.size();
      match(member);
    }
  }
  return true;
}

/// Looks at where the message is, and copies it from there if it does not follow. False: that is impossible.
bool Mail::take_place(int member, const Head& head) {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  if (head.place.memory == MessagePlace::kInlineWithProof) {
    const std::uint64_t proof = doorbell(member).proof.load(std::memory_order_relaxed);
    ring(member, job_.me).reads.store(places_.try_proof(member, head.place.offset, proof), std::memory_order_relaxed);
  }
  if (head.place.is_inline()) {
    return true;
  }
  std::byte* const to = peer.taker ? peer.taker->data : peer.early.back().data.data();
  std::errc failure = places_.copy(member, head.place, to, head.size);
  after_reads();
  // Acquire: pairs with withdraw_all(), before which the sender has told of the end of the group, if that is why.
  if (ring(member, job_.me).withdrawn.load(std::memory_order_acquire)) {
    if (end_with_group()) {
      return false;
    }
    failure = std::errc::operation_canceled;
  }
  if (failure == std::errc{}) {
    peer.have = head.size;
    ++direct_messages_;
    return true;
  }
  const auto error = std::make_shared<const Error>(
      fail(failure, fmt::format("shmem: PE {}: a message of {} cannot be copied: {}", job_.world_me(),
                                describe_pe(job_, member), std::make_error_code(failure).message())));
  hooks_.lost(*error);
  end_all(error);
  return false;
}

void Mail::found_peer(GroupMessage& message, int member) const {
  message.place = member;
  message.peer = job_.nodes.world(member);
}

/// Finds who takes the message: the first that asked for it, or none yet.
bool Mail::begin_message(int member, const Head& head) {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  const auto found = std::find_if(receives_.begin(), receives_.end(), [&](const MessagePointer& one) {
    return (one->place == member || one->place < 0) && one->tag == head.tag;
  });
  // One of another size or type has to be taken out of the ring all the same.
  if (found == receives_.end() || !(*found)->fits({head.size, head.type})) {
    peer.early.push_back({head, std::vector<std::byte>(head.size), 0});
    return false;
  }
  peer.taker = *found;
  found_peer(*peer.taker, member);
  peer.taker->begun = true;
  receives_.erase(found);
  return true;
}

/// A message that has come in before: has a receiver asked for it by now?
void Mail::match(int member) {
  for (auto one = receives_.begin(); one != receives_.end();) {
    const MessagePointer message = *one++;
    if (message->place == member || message->place < 0) {
      take_early(message);
    }
  }
}

bool Mail::take_early(const MessagePointer& message) {
  for (int member = 0; member < job_.size; ++member) {
    if (message->place >= 0 && message->place != member) {
      continue;
    }
    auto& early = peers_[static_cast<std::size_t>(member)].early;
    for (auto one = early.begin(); one != early.end(); ++one) {
      const bool whole = one->have == one->data.size();
      if (one->head.tag != message->tag || !whole) {
        continue;
      }
      found_peer(*message, member);
      if (message->fits({one->head.size, one->head.type})) {
        copy_cached(message->data, one->data.data(), message->size);
      }
      end_received(message, one->head);  // before it is in no list any more: this may need memory
      receives_.remove(message);
      early.erase(one);
      return true;
    }
  }
  return false;
}

/// A message that has come, whole.
void Mail::end_received(const MessagePointer& message, const Head& head) {
  auto difference = compare_ends(job_.world_me(), *message, {head.size, head.type});
  if (head.type == 0) {
    end(message, difference);
    return;
  }
  Peer& peer = peers_[static_cast<std::size_t>(message->place)];
  peer.answers.push_back({{head.number, {message->size, message->type}}, message, std::move(difference)});
}

/// False: nothing, or there is no room.
bool Mail::tell_answers(int member) {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  if (peer.answers.empty()) {
    return false;
  }
  MailRing& to = ring(member, job_.me);
  const std::uint64_t before = to.answered.load(std::memory_order_relaxed);  // only this process writes it
  // Acquire: pairs with hear_answers(), which has read the answers up to there.
  const std::uint64_t full = to.heard.load(std::memory_order_acquire) + MailRing::kAnswers;
  std::uint64_t answered = before;
  while (!peer.answers.empty()) {
    const Answer& one = peer.answers.front();
    if (answered != full) {
      to.answers[answered % MailRing::kAnswers] = one.answer;
      to.answered.store(++answered, std::memory_order_release);  // pairs with hear_answers()
    } else if (to.awaits.load(std::memory_order_relaxed) != 0) {
      break;
    }  // else its sender has given up all messages that have come here
    if (one.message) {
      end(one.message, one.difference);
    }
    peer.answers.pop_front();
  }
  return answered != before;
}

bool Mail::hear_answers(int member) {
  Peer& peer = peers_[static_cast<std::size_t>(member)];
  MailRing& from = ring(job_.me, member);
  const std::uint64_t before = from.heard.load(std::memory_order_relaxed);       // only this process writes it
  const std::uint64_t answered = from.answered.load(std::memory_order_acquire);  // pairs with tell_answers()
  if (answered == before) {
    return false;
  }
  push(member);  // moves the message on that has been taken before it was answered
  for (std::uint64_t at = before; at != answered; ++at) {
    const MailAnswer answer = from.answers[at % MailRing::kAnswers];
    const auto one = std::find_if(peer.unanswered.begin(), peer.unanswered.end(),
                                  [&](const Unanswered& sent) { return sent.number == answer.number; });
    if (one != peer.unanswered.end()) {  // else its sender has not waited so long
      const MessagePointer message = one->message;
      end(message, compare_ends(job_.world_me(), *message, answer.end));
      peer.unanswered.erase(one);
      from.awaits.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  from.heard.store(answered, std::memory_order_release);  // pairs with tell_answers()
  return true;
}

}  // namespace shmem
