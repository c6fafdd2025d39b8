// SPDX-License-Identifier: Apache-2.0
// Calls of other libraries that may never return, each in a thread of its own.
#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/helper_thread.hpp"
#include "base/result.hpp"

namespace base {

/// What `call` returns, or nothing if it has not returned within `limit` or before `stop()` holds. `call` runs in its
/// own thread, which is then detached, so `call` owns everything it uses.
template <typename Call, typename Stop>
Result<std::optional<std::invoke_result_t<Call>>> within(std::chrono::milliseconds limit, Call call, Stop stop) {
  constexpr std::chrono::milliseconds kLook{100};
  std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
  auto outcome = task.get_future();
  auto thread = HelperThread::start(std::move(task));
  if (!thread) {
    return thread.error();
  }
  for (auto left = limit; outcome.wait_for(std::min(left, kLook)) != std::future_status::ready; left -= kLook) {
    if (left > kLook && !stop()) {
      continue;
    }
    thread->abandon();
    return std::nullopt;
  }
  return std::optional(outcome.get());
}

template <typename Call>
Result<std::optional<std::invoke_result_t<Call>>> within(std::chrono::milliseconds limit, Call call) {
  return within(limit, std::move(call), [] { return false; });
}

}  // namespace base
