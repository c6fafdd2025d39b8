// SPDX-License-Identifier: Apache-2.0
// A member of an exchange, and what the commands agree about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "shmemx_exchange.h"
#include "tools/kv_exchange/options.hpp"

namespace kv_exchange {

using base::Error;
using base::fail;
using base::Result;
using Bytes = std::vector<std::byte>;

/// Before the key of a block that its owner hands over: a serving member copies and publishes it.
constexpr std::string_view kPutPrefix = "put:";
constexpr std::size_t kMostKeyBytes = SHMEMX_EXCHANGE_MOST_KEY_BYTES - kPutPrefix.size();

/// The layout under which blocks are published here: what is pulled is checked against it. Never 0.
std::uint64_t digest_of(std::span<const std::byte> bytes);

/// A block of a member, with its key.
struct Listed {
  std::string key;
  shmemx_exchange_block_t block;
};

/// How commands join that look into an exchange: with a few blocks, and with time for members of a busy machine.
constexpr shmemx_exchange_options_t kVisitor{16, 0, 0, 0, 10'000, {0, 0, 0}, nullptr, nullptr};

class Member {
 public:
  static Result<Member> open(const std::string& exchange, const shmemx_exchange_options_t& options = {});
  /// The same, connected with members on other nodes if the command line names an address. Their answers have the time
  /// of the join.
  static Result<Member> open(const Options& command, const shmemx_exchange_options_t& options);

  /// The holder of the exchange.
  static Result<Member> hold(const Options& command, const shmemx_exchange_options_t& options,
                             const shmemx_exchange_holding_t& holding);

  /// The holder has the command's limit to answer.
  void use_holder(const Options& command);

  /// New memory.
  Result<std::pair<std::uint32_t, std::byte*>> make_memory(std::size_t bytes);
  Result<void> publish(const std::string& key, std::uint32_t region, std::size_t offset,
                       std::span<const std::byte> bytes);
  Result<void> withdraw(const std::string& key, std::uint64_t timeout_ns);

  /// `layout` 0: any.
  Result<shmemx_exchange_block_t> find(const std::string& key, std::uint64_t layout = 0);
  [[nodiscard]] bool has(const std::string& key, std::uint64_t layout);
  Result<void> pull(const shmemx_exchange_block_t& block, std::byte* to);

  /// Where members of other nodes reach this one; "": nowhere.
  [[nodiscard]] std::string address() const;
  std::vector<shmemx_exchange_member_t> others();
  /// The blocks whose keys begin with `prefix`: others take no memory.
  std::vector<Listed> list(std::uint32_t seat, std::string_view prefix = {});
  shmemx_exchange_stats_t stats();
  /// Of another member: an Error if there is none on the seat.
  Result<shmemx_exchange_stats_t> stats_of(std::uint32_t seat);
  [[nodiscard]] shmemx_exchange_t* get() const { return exchange_.get(); }

 private:
  struct Close {
    void operator()(shmemx_exchange_t* exchange) const { shmemx_exchange_close(exchange); }
  };
  explicit Member(shmemx_exchange_t* exchange) : exchange_(exchange) {}
  /// With members on other nodes, if the command line names an address.
  Result<void> connect(const Options& command, std::uint32_t answer_ms);

  std::unique_ptr<shmemx_exchange_t, Close> exchange_;
};

/// The error that a call has returned.
Error error_of(int code);

}  // namespace kv_exchange
