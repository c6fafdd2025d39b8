// SPDX-License-Identifier: Apache-2.0
// What a handle of shmemx_exchange.h stands for.
#pragma once

#include <memory>

#include "base/forks.hpp"
#include "kv/exchange/call_errors.hpp"
#include "kv/exchange/exchange.hpp"
#include "kv/exchange/holder.hpp"
#include "kv/exchange/holder_client.hpp"

struct shmemx_exchange_t {
  std::unique_ptr<shmem::exchange::Exchange> exchange;
  // After that, which they use.
  std::unique_ptr<shmem::exchange::HolderClient> client;  // of the exchange's holder
  std::unique_ptr<shmem::exchange::Holder> holder;        // null: this member is not the holder
  unsigned fork = base::forks();
};

namespace shmem::exchange {

/// A handle that this process has inherited by a fork cannot be used: the threads behind it are its parent's, and one
/// of them may have had a mutex.
template <typename Handle>
bool is_inherited(const Handle& handle) {
  return handle.fork != base::forks();
}

[[gnu::cold, gnu::noinline]] inline int refuse_child(const char* call) {
  return report(
      shmem::fail(std::errc::operation_not_permitted,
                  fmt::format("shmem: {}: this process was forked from a member of the exchange, and is not a member "
                              "itself; open the exchange in this process",
                              call)));
}

inline int code_of(const Result<void>& result) {
  return result ? 0 : report(result.error());
}

/// Takes an option: 0 is the default, and more than `most` is an error.
inline bool take_option(std::uint32_t given, std::uint32_t most, std::uint32_t& value) {
  value = given != 0 ? given : value;
  return value <= most;
}

/// The settings of shmemx_exchange_open.
Result<ExchangeSettings> settings_from(const shmemx_exchange_options_t* options, const char* call);

}  // namespace shmem::exchange
