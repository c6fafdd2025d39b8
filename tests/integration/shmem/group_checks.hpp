// SPDX-License-Identifier: Apache-2.0
// What the ranks of a group check, on one node or on several.
#pragma once

#include <algorithm>

#include "tests/integration/shmem/group_ranks.hpp"

namespace group_ranks {

/// Around the limits of what goes inline, of a stage, and of its pieces.
inline const std::vector<std::size_t> kSizes{
    0, 1, 8, 63, 224, 225, 330, 992, 993, 4096, 100'003, std::size_t{512} << 10, 1'500'001};

inline std::string check_kind(shmemx_group_t* group, int kind, int rank, int size, std::size_t bytes, int root) {
  shmemx_group_call_t call = call_of(kind);
  call.bytes = bytes;
  call.root = root;
  const bool many_from = kind == SHMEMX_GROUP_SCATTER || kind == SHMEMX_GROUP_REDUCE_SCATTER;
  const bool many_to = kind == SHMEMX_GROUP_ALLGATHER || kind == SHMEMX_GROUP_GATHER;
  std::vector<Bytes> from(static_cast<std::size_t>(many_from ? size : 1));
  std::vector<Bytes> to(static_cast<std::size_t>(many_to ? size : 1), Bytes(bytes, 0xee));
  std::vector<const void*> from_places(from.size());
  std::vector<void*> to_places(to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = filled(rank, static_cast<int>(i), bytes);
    from_places[i] = from[i].data();
  }
  std::ranges::transform(to, to_places.begin(), [](Bytes& one) { return one.data(); });
  call.from = from_places.data();
  call.to = to_places.data();
  if (shmemx_group_run(group, &call) != 0) {
    return shmemx_error_text();
  }
  const auto expected = [&](int block, std::size_t at) -> std::uint8_t {
    std::uint8_t sum = 0;
    switch (kind) {
      case SHMEMX_GROUP_BROADCAST:
        return rank == root ? 0xee : pattern(root, 0, at);
      case SHMEMX_GROUP_SCATTER:
        return pattern(root, rank, at);
      case SHMEMX_GROUP_ALLGATHER:
        return pattern(block, 0, at);
      case SHMEMX_GROUP_GATHER:
        return rank == root ? pattern(block, 0, at) : 0xee;
      case SHMEMX_GROUP_REDUCE_SCATTER:
        for (int i = 0; i < size; ++i) {
          sum = static_cast<std::uint8_t>(sum + pattern(i, rank, at));
        }
        return sum;
      default:
        for (int i = 0; i < size; ++i) {
          sum = static_cast<std::uint8_t>(sum + pattern(i, 0, at));
        }
        return kind == SHMEMX_GROUP_REDUCE && rank != root ? 0xee : sum;
    }
  };
  for (std::size_t block = 0; block < to.size(); ++block) {
    for (std::size_t at = 0; at < bytes; ++at) {
      if (to[block][at] != expected(static_cast<int>(block), at)) {
        return "kind " + std::to_string(kind) + " of " + std::to_string(bytes) + " bytes: block " +
               std::to_string(block) + " is wrong at " + std::to_string(at);
      }
    }
  }
  return "";
}

inline std::string check_all_kinds(shmemx_group_t* group, int rank, int size) {
  for (const std::size_t bytes : kSizes) {
    for (int kind = SHMEMX_GROUP_BROADCAST; kind <= SHMEMX_GROUP_REDUCE_SCATTER; ++kind) {
      const int root = static_cast<int>(bytes + static_cast<std::size_t>(kind)) % size;
      if (auto bad = check_kind(group, kind, rank, size, bytes, root); !bad.empty()) {
        return bad;
      }
    }
  }
  return "";
}

inline std::string check_alltoall(shmemx_group_t* group, int rank, int size) {
  for (const std::size_t unit : {0U, 3U, 40U, 200U, 40'000U, 300'000U}) {
    // Rank i gives (i + 1)^2 * (j + 2) units to rank j: sizes differ, and with units of 40 and of 200 bytes those of
    // some ranks go along when the ranks meet, those of others do not.
    const auto bytes = [unit](int i, int j) { return unit * static_cast<std::size_t>((i + 1) * (i + 1) * (j + 2)); };
    std::vector<Bytes> from;
    std::vector<Bytes> to;
    std::vector<std::uint64_t> from_bytes;
    std::vector<std::uint64_t> to_bytes;
    for (int i = 0; i < size; ++i) {
      from.push_back(filled(rank, i, bytes(rank, i)));
      to.emplace_back(bytes(i, rank));
      from_bytes.push_back(from.back().size());
      to_bytes.push_back(to.back().size());
    }
    std::vector<const void*> from_places;
    std::vector<void*> to_places;
    for (int i = 0; i < size; ++i) {
      from_places.push_back(from[static_cast<std::size_t>(i)].data());
      to_places.push_back(to[static_cast<std::size_t>(i)].data());
    }
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLTOALL);
    call.from = from_places.data();
    call.to = to_places.data();
    call.from_bytes = from_bytes.data();
    call.to_bytes = to_bytes.data();
    if (shmemx_group_run(group, &call) != 0) {
      return shmemx_error_text();
    }
    for (int i = 0; i < size; ++i) {
      if (to[static_cast<std::size_t>(i)] != filled(i, rank, bytes(i, rank))) {
        return "alltoall of units of " + std::to_string(unit) + ": wrong data of rank " + std::to_string(i);
      }
    }
  }
  return "";
}

/// Makes a call that must fail: "" if it does, with all of the parts in its text.
inline std::string expect_failure(shmemx_group_t* group, const shmemx_group_call_t& call, int error,
                                  const std::vector<std::string>& parts) {
  const int got = shmemx_group_run(group, &call);
  const std::string text = shmemx_error_text();
  for (const std::string& part : parts) {
    if (got != -error || text.find(part) == std::string::npos) {
      return std::string("got ").append(std::to_string(got)).append(": ").append(text).append("; expected ") + part;
    }
  }
  return "";
}

/// For three ranks.
inline std::string check_calls_that_differ(shmemx_group_t* group, int rank, int size) {
  Bytes data(5000);
  void* place = data.data();
  shmemx_group_call_t call = call_of(SHMEMX_GROUP_ALLREDUCE);
  call.from = &place;
  call.to = &place;
  call.bytes = rank == 1 ? 16 : 8;
  std::string bad = expect_failure(group, call, EINVAL, {"rank 1 makes allreduce of 16 bytes", "rank 0 makes"});
  call.bytes = rank == 2 ? 5000 : 8;  // one is inline, the other is not
  bad += expect_failure(group, call, EINVAL, {"rank 2 makes allreduce of 5000 bytes"});
  call.bytes = 8;
  call.operation = rank == 1 ? SHMEMX_GROUP_MAX : SHMEMX_GROUP_SUM;
  bad += expect_failure(group, call, EINVAL, {"maximum", "sum"});
  call.operation = SHMEMX_GROUP_SUM;
  call.type = rank == 0 ? SHMEMX_GROUP_INT64 : SHMEMX_GROUP_FLOAT64;
  bad += expect_failure(group, call, EINVAL, {"int64", "float64"});
  call.type = SHMEMX_GROUP_UINT8;
  call.kind = rank == 2 ? SHMEMX_GROUP_BARRIER : SHMEMX_GROUP_BROADCAST;
  bad += expect_failure(group, call, EINVAL, {"barrier", "broadcast"});
  call.kind = SHMEMX_GROUP_ALLREDUCE;
  call.type = rank == 1 ? SHMEMX_GROUP_BYTES : SHMEMX_GROUP_UINT8;
  bad += expect_failure(group, call, EINVAL, {rank == 1 ? "there is no sum of type bytes" : "rank 1 cannot"});
  call.type = SHMEMX_GROUP_UINT8;
  if (shmemx_group_run_signed(group, &call, rank == 2 ? 5 : 4) != -EINVAL ||
      std::string(shmemx_error_text()).find("rank 2 makes one whose signature") == std::string::npos) {
    bad += std::string("signatures that differ: ") + shmemx_error_text();
  }
  if (shmemx_group_run_signed(group, &call, 4) != 0) {
    bad += std::string("equal signatures: ") + shmemx_error_text();
  }
  return bad + check_all_kinds(group, rank, size);
}

struct Mail {
  shmemx_group_message_t* message = nullptr;
  std::atomic<int> done{0};
  Mail() = default;
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;
  ~Mail() { shmemx_group_message_free(message); }
  void send(shmemx_group_t* group, const Bytes& data, int to, int tag) {
    shmemx_group_send(group, data.data(), data.size(), to, tag, 120'000'000'000, count, this, &message);
  }
  void send(shmemx_group_t* group, const Bytes& data, int to, int tag, std::uint32_t type,
            std::uint64_t timeout = 120'000'000'000) {
    shmemx_group_send_typed(group, data.data(), data.size(), type, to, tag, timeout, count, this, &message);
  }
  void receive_typed(shmemx_group_t* group, Bytes& data, int from, int tag, std::uint32_t type) {
    shmemx_group_receive_typed(group, data.data(), data.size(), type, from, tag, 120'000'000'000, count, this,
                               &message);
  }
  void receive(shmemx_group_t* group, Bytes& data, int from, int tag, std::uint64_t timeout = 120'000'000'000) {
    shmemx_group_receive(group, data.data(), data.size(), from, tag, timeout, count, this, &message);
  }
  static void count(void* self) { ++static_cast<Mail*>(self)->done; }
};

/// For two ranks. `any`: some are received from any rank.
inline std::string check_messages(shmemx_group_t* group, int rank, bool any) {
  const std::vector<std::size_t> sizes{0, 5, 200'000, 3'000'000};
  std::vector<Bytes> data;
  data.reserve(sizes.size());
  for (const std::size_t bytes : sizes) {
    data.push_back(filled(rank, static_cast<int>(bytes % 11), bytes));
  }
  std::vector<Bytes> got(sizes.size());
  std::array<Mail, 4> sent;
  std::array<Mail, 4> received;
  // Both ranks send all before they receive, and receive in the other order.
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    sent[i].send(group, data[i], 1 - rank, static_cast<int>(i));
  }
  for (std::size_t i = sizes.size(); i-- > 0;) {
    got[i].resize(sizes[i]);
    received[i].receive(group, got[i], i % 2 == 0 || !any ? 1 - rank : -1, static_cast<int>(i));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (shmemx_group_message_wait(received[i].message) != 0 || shmemx_group_message_wait(sent[i].message) != 0) {
      return shmemx_error_text();
    }
    if (got[i] != filled(1 - rank, static_cast<int>(sizes[i] % 11), sizes[i])) {
      return "wrong data of " + std::to_string(sizes[i]) + " bytes";
    }
    if (shmemx_group_message_source(received[i].message) != 1 - rank) {
      return "wrong source";
    }
  }
  shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
  shmemx_group_run(group, &call);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sent[i].done != 1 || received[i].done != 1) {
      return "done was not called once";
    }
  }
  return "";
}

/// Rank 0 receives what all others send, each message from any of them: those of one rank in their order.
inline std::string check_messages_of_any(shmemx_group_t* group, int rank, int size) {
  constexpr int kEach = 50;
  constexpr int kTag = 4;
  const auto end = [group]() -> std::string {  // a rank that has gone ends the messages of the others
    shmemx_group_call_t call = call_of(SHMEMX_GROUP_BARRIER);
    return shmemx_group_run(group, &call) == 0 ? "" : shmemx_error_text();
  };
  if (rank != 0) {
    for (int i = 0; i < kEach; ++i) {
      const Bytes data = filled(rank, i, 3000);
      Mail mail;
      mail.send(group, data, 0, kTag);
      if (shmemx_group_message_wait(mail.message) != 0) {
        return shmemx_error_text();
      }
    }
    return end();
  }
  std::vector<int> next(static_cast<std::size_t>(size), 0);
  for (int i = 0; i < kEach * (size - 1); ++i) {
    Bytes got(3000);
    Mail mail;
    mail.receive(group, got, -1, kTag);
    if (shmemx_group_message_wait(mail.message) != 0) {
      return shmemx_error_text();
    }
    const int source = shmemx_group_message_source(mail.message);
    if (source < 1 || source >= size || got != filled(source, next[static_cast<std::size_t>(source)]++, got.size())) {
      return "wrong source, data or order in message " + std::to_string(i);
    }
  }
  return end();
}

inline std::string check_many_messages(shmemx_group_t* group, int rank, int size) {
  for (int i = 0; i < 2000; ++i) {
    const Bytes data = filled(rank, i, static_cast<std::size_t>(i % 700));
    Bytes got(data.size());
    Mail out;
    Mail in;
    out.send(group, data, (rank + 1) % size, i % 3);
    in.receive(group, got, (rank + size - 1) % size, i % 3);
    if (shmemx_group_message_wait(in.message) != 0 || shmemx_group_message_wait(out.message) != 0) {
      return shmemx_error_text();
    }
    if (got != filled((rank + size - 1) % size, i, got.size())) {
      return "wrong data in round " + std::to_string(i);
    }
  }
  return "";
}

inline std::string check_message_not_waited_for(shmemx_group_t* group, int rank, int /*size*/) {
  Bytes data = filled(0, 1, 4 << 20);
  Bytes got(data.size());
  Mail mail;
  if (rank == 0) {
    mail.send(group, data, 1, 7);
  } else {
    mail.receive(group, got, 0, 7);
  }
  for (int i = 0; i < 60'000 && shmemx_group_message_test(mail.message) == -EAGAIN; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (shmemx_group_message_test(mail.message) != 0) {
    return shmemx_error_text();
  }
  return rank == 0 || got == data ? "" : "wrong data";
}

}  // namespace group_ranks
