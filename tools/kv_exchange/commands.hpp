// SPDX-License-Identifier: Apache-2.0
// The commands of kv_exchange. Each prints its results; an Error is for the caller to print.
#pragma once

#include <fmt/format.h>

#include <signal.h>

#include <cstdio>

#include "tools/kv_exchange/member.hpp"
#include "tools/kv_exchange/options.hpp"

namespace kv_exchange {

Result<void> serve(const Options& options);
Result<void> hold(const Options& options);
Result<void> pin(const Options& options, bool pinned);
Result<void> events(const Options& options);
Result<void> put(const Options& options);
Result<void> get(const Options& options);
Result<void> list(const Options& options);
Result<void> stats(const Options& options);
Result<void> top(const Options& options);
Result<void> bench(const Options& options);
/// bench --member
Result<void> bench_nodes(const Options& options);
/// SHMEM_EXCHANGE_DIR, or "".
std::string exchange_folder();
Result<void> exchanges();
Result<void> ping(const Options& options);
/// The Error of an exchange without members: it says in which place they were looked for, and how to start one.
Error no_members(const Options& options);

/// A key as a line may show it.
std::string printable(const std::string& key);

/// Prints to standard output.
template <typename... Values>
void say(fmt::format_string<const Values&...> format, const Values&... values) {
  std::fputs(fmt::format(format, values...).c_str(), stdout);
}

/// Signals that end a command, which takes them with ended(). REQUIRES: the process has one thread yet.
class EndSignals {
 public:
  EndSignals();
  /// True if one has come, after at most this time.
  [[nodiscard]] bool ended(double seconds) const;

 private:
  sigset_t set_;
};

/// All bytes of the file; "-" is standard input.
Result<Bytes> read_file(const std::string& path);

}  // namespace kv_exchange
