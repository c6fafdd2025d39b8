// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <ctime>

#include "tools/kv_exchange/commands.hpp"

namespace kv_exchange {

EndSignals::EndSignals() : set_{} {
  ::sigemptyset(&set_);
  ::sigaddset(&set_, SIGINT);
  ::sigaddset(&set_, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set_, nullptr);
}

bool EndSignals::ended(double seconds) const {
  const double whole = std::floor(seconds);
  const timespec time{.tv_sec = static_cast<std::time_t>(whole), .tv_nsec = static_cast<long>((seconds - whole) * 1e9)};
  return ::sigtimedwait(&set_, nullptr, &time) >= 0;
}

}  // namespace kv_exchange
