// SPDX-License-Identifier: Apache-2.0
// What the ranks of a group check of messages with types, on one node or on several.
#pragma once

#include "tests/integration/shmem/group_checks.hpp"

namespace group_ranks {

/// One message from rank 0 to rank 1.
struct TypedCase {
  std::size_t sent_bytes, received_bytes;
  std::uint32_t sent_type, received_type;
  int sender_error, receiver_error;
};

/// The end of a message that must fail with `error`, or not (0).
inline std::string check_end(const Mail& mail, int rank, const TypedCase& one) {
  const int expected = rank == 0 ? one.sender_error : one.receiver_error;
  const int got = shmemx_group_message_wait(mail.message);
  const std::string text = got == 0 ? "" : shmemx_error_text();
  std::vector<std::string> parts{"rank 0", "rank 1", std::to_string(one.sent_bytes) + " bytes"};
  parts.push_back(expected == -EPROTOTYPE ? "is of type " + std::to_string(one.sent_type)
                                          : "has room for " + std::to_string(one.received_bytes));
  parts.push_back(expected == -EPROTOTYPE ? "receives it is of type " + std::to_string(one.received_type) : "");
  bool good = got == expected;
  for (const std::string& part : parts) {
    good = good && (expected == 0 || text.find(part) != std::string::npos);
  }
  const auto peer_type = shmemx_group_message_peer_type(mail.message);
  const bool hears = rank == 1 || one.sent_type != 0;
  good = good && peer_type == (!hears ? 0 : rank == 0 ? one.received_type : one.sent_type);
  return good ? ""
              : "sent " + std::to_string(one.sent_bytes) + " bytes: got " + std::to_string(got) + ": " + text + "\n";
}

/// `early`: the message comes before its receiver asks for it.
inline std::string check_typed_case(shmemx_group_t* group, int rank, int source, bool early, const TypedCase& one) {
  const Bytes data = filled(0, 3, one.sent_bytes);
  Bytes got(one.received_bytes);
  Mail mail;
  shmemx_group_call_t barrier = call_of(SHMEMX_GROUP_BARRIER);
  if (rank == 0) {
    mail.send(group, data, 1, 5, one.sent_type);
  } else if (!early) {
    mail.receive_typed(group, got, source, 5, one.received_type);
  }
  shmemx_group_run(group, &barrier);
  if (rank == 1 && early) {
    mail.receive_typed(group, got, source, 5, one.received_type);
  }
  std::string bad = check_end(mail, rank, one);
  if (rank == 1 && one.receiver_error == 0 && got != data) {
    bad += "wrong data of " + std::to_string(one.sent_bytes) + " bytes\n";
  }
  return bad;
}

/// For two ranks. `any`: some are received from any rank.
inline std::string check_typed_messages(shmemx_group_t* group, int rank, bool any) {
  std::string bad;
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{65'536}, std::size_t{300'000}}) {
    const std::vector<TypedCase> cases{
        {bytes, bytes, 7, 7, 0, 0},
        {bytes, bytes, 7, 4, -EPROTOTYPE, -EPROTOTYPE},
        {bytes, bytes + 8, 7, 4, -EPROTOTYPE, -EPROTOTYPE},
        {bytes, bytes, 7, 0, 0, 0},
        {bytes, bytes, 0, 4, 0, 0},
        {bytes, bytes, 4095, 1, -EPROTOTYPE, -EPROTOTYPE},
        {bytes, bytes - 8, 7, 7, -EMSGSIZE, -EMSGSIZE},
        {bytes, bytes + 8, 7, 0, -EMSGSIZE, -EMSGSIZE},
        {bytes, bytes - 8, 0, 4, 0, -EMSGSIZE},
        {bytes, bytes, 4095, 4095, 0, 0},
    };
    for (const TypedCase& one : cases) {
      for (const bool early : {false, true}) {
        bad += check_typed_case(group, rank, 0, early, one);
        bad += any ? check_typed_case(group, rank, -1, early, one) : "";
      }
    }
  }
  return bad + check_messages(group, rank, any);
}

/// The send of rank 0 times out; rank 1 receives its message nevertheless, and the next one.
inline std::string check_late_typed(shmemx_group_t* group, int rank, const SharedCount& gave_up) {
  const Bytes first = filled(0, 1, 100);
  const Bytes second = filled(0, 2, 100);
  Mail late;
  Mail next;
  if (rank == 0) {
    late.send(group, first, 1, 3, 7, 100'000'000);
    const int error = shmemx_group_message_wait(late.message);
    const std::string text = shmemx_error_text();
    gave_up.add();
    next.send(group, second, 1, 3, 7);
    const int outcome = shmemx_group_message_wait(next.message);
    return error == -ETIMEDOUT && outcome == -EPROTOTYPE && late.done == 1 && next.done == 1
               ? ""
               : text + ", then " + std::to_string(outcome);
  }
  while (gave_up.get() == 0) {
    std::this_thread::yield();
  }
  Bytes got(100);
  late.receive_typed(group, got, 0, 3, 7);
  const int error = shmemx_group_message_wait(late.message);
  const bool good = error == 0 && got == first;
  next.receive_typed(group, got, 0, 3, 4);
  return shmemx_group_message_wait(next.message) == -EPROTOTYPE && good ? "" : shmemx_error_text();
}

/// Rank 0 sends all before rank 1 receives them in the other order.
inline std::string check_many_typed_messages(shmemx_group_t* group, int rank, int /*size*/) {
  constexpr int kMessages = 300;
  std::vector<Mail> mails(kMessages);
  std::vector<Bytes> data;
  data.reserve(kMessages);
  for (int i = 0; i < kMessages; ++i) {
    data.push_back(rank == 0 ? filled(0, i, 40) : Bytes(40));
  }
  for (int i = 0; rank == 0 && i < kMessages; ++i) {
    mails[static_cast<std::size_t>(i)].send(group, data[static_cast<std::size_t>(i)], 1, i, 7);
  }
  std::string bad;
  for (int i = kMessages; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    if (rank == 1) {
      mails[at].receive_typed(group, data[at], 0, i, i % 2 == 0 ? 7 : 4);
    }
    if (shmemx_group_message_wait(mails[at].message) != (i % 2 == 0 ? 0 : -EPROTOTYPE)) {
      bad += "message " + std::to_string(i) + ": " + shmemx_error_text() + "\n";
    }
    if (i % 2 == 0 && data[at] != filled(0, i, 40)) {
      bad += "wrong data of message " + std::to_string(i) + "\n";
    }
  }
  return bad;
}

}  // namespace group_ranks
