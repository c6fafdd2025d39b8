// SPDX-License-Identifier: Apache-2.0
// The holder of an exchange: a member with memory for the blocks of all engines of its node. An engine writes a block
// into staging memory that the holder has leased to it, and the holder copies it into its own, which no other process
// can write, and publishes it. So blocks outlive their engines, and no engine can change one that was published.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/disposal.hpp"
#include "base/helper_thread.hpp"
#include "base/mapping.hpp"
#include "kv/exchange/exchange.hpp"
#include "kv/exchange/holder_blocks.hpp"
#include "kv/exchange/holder_session.hpp"
#include "kv/exchange/meeting_place.hpp"

namespace shmem::exchange {

struct HolderSettings {
  std::uint64_t bytes = 0;
  std::vector<TenantLimit> tenants{};
};

/// Thread-safe. One thread answers all engines, in turns.
class Holder {
 public:
  /// `exchange` was opened with ExchangeSettings::holds, and outlives this. Errors: EADDRINUSE the exchange has a
  /// holder.
  static Result<std::unique_ptr<Holder>> open(Exchange& exchange, const HolderSettings& settings);
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder();

 private:
  /// What others see of the thread's blocks.
  struct Picture {
    shmemx_exchange_holder_stats_t stats{};
    std::vector<TenantUse> tenants{};
  };

  Holder(Exchange& exchange, PlaceSocket socket, base::UniqueFd wake, std::unique_ptr<HeldBlocks> blocks);
  void run();
  void turn();
  bool make_room();
  void end(std::unique_ptr<HolderSession> session) noexcept;
  void take_picture();
  void write_metrics(MetricsPage& page) const;

  Exchange& exchange_;
  PlaceSocket socket_;
  base::UniqueFd wake_;
  std::atomic<bool> stop_{false};
  base::Disposal disposal_;

  // Only the thread uses these.
  std::unique_ptr<HeldBlocks> blocks_;
  std::vector<std::unique_ptr<HolderSession>> sessions_;
  std::chrono::steady_clock::time_point next_note_{};  // of what readers use

  mutable std::mutex picture_mutex_;  // for the next
  Picture picture_;

  base::HelperThread thread_;  // last: it uses the others
};

}  // namespace shmem::exchange
