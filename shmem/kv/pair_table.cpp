// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/pair_table.hpp"

#include <string>

namespace shmem::kv {
namespace {

tl::unexpected<Error> bad_table(const std::string& what) {
  return fail(std::errc::invalid_argument, "global_shuffle_table: " + what);
}

std::string row(const PairTable& table, std::int64_t pe) {
  const int index = static_cast<int>(pe);
  return "row " + std::to_string(pe) + " {" + std::to_string(table.peer(index)) + ", " +
         (table.operation(index) == kSend ? "send" : "receive") + "}";
}

Result<void> check_row(const PairTable& table, int pe) {
  const std::int64_t peer = table.peer(pe);
  if (!table.in_range(peer)) {
    return bad_table(row(table, pe) + " names a PE that is not in 0.." + std::to_string(table.pes() - 1));
  }
  const int other = static_cast<int>(peer);
  if (table.peer(other) != pe) {
    return bad_table(row(table, pe) + " and " + row(table, peer) + " do not name each other");
  }
  if (table.operation(pe) == kSend && table.operation(other) == kSend) {
    return bad_table(other == pe ? row(table, pe) + " sends to itself"
                                 : row(table, pe) + " and " + row(table, peer) + " both send; one of a pair receives");
  }
  return {};
}

}  // namespace

Result<void> PairTable::check() const {
  for (int pe = 0; pe < pes(); ++pe) {
    if (auto ok = check_row(*this, pe); !ok) {
      return ok;
    }
  }
  return {};
}

Role PairTable::role(int pe) const {
  if (operation(pe) == kSend) {
    return Role::kSender;
  }
  return operation(static_cast<int>(peer(pe))) == kSend ? Role::kReceiver : Role::kIdle;
}

int PairTable::senders() const {
  int senders = 0;
  for (int pe = 0; pe < pes(); ++pe) {
    senders += role(pe) == Role::kSender ? 1 : 0;
  }
  return senders;
}

}  // namespace shmem::kv
