// SPDX-License-Identifier: Apache-2.0
// An engine's side of the holder: puts, and what else it asks of it. Reads need none of it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/disposal.hpp"
#include "base/mapping.hpp"
#include "kv/exchange/exchange.hpp"
#include "kv/exchange/holder_events.hpp"
#include "kv/exchange/holder_messages.hpp"
#include "kv/exchange/holder_socket.hpp"

namespace shmem::exchange {

/// Thread-safe: calls take turns. It connects with the first call, and again when the holder has been restarted. A
/// holder that does not answer costs the call that finds it out `answer_limit`, and later ones nothing: they fail until
/// it answers.
class HolderClient {
 public:
  explicit HolderClient(Exchange& exchange) : exchange_(exchange) {}
  HolderClient(const HolderClient&) = delete;
  HolderClient& operator=(const HolderClient&) = delete;
  ~HolderClient();

  /// From now on. Ends the connection.
  void use(const std::string& tenant, std::chrono::milliseconds answer_limit);

  /// Sets a status for each. An Error if the holder could not answer all.
  Result<void> put(std::span<shmemx_exchange_put_t> puts);
  /// kDiscard, kPin or kUnpin, of a status each.
  Result<void> change(HolderKind kind, std::span<const shmemx_exchange_key_t> keys, std::uint64_t layout,
                      std::int32_t* statuses);
  /// Evicts all of the tenant's blocks that are not pinned.
  Result<void> clear();
  Result<void> stats(shmemx_exchange_holder_stats_t& stats);
  /// Events after `position`. EOVERFLOW: some are lost, or the holder is another one.
  Result<int> events(shmemx_exchange_position_t& position, std::span<shmemx_exchange_event_t> events,
                     std::chrono::nanoseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  class Putting;
  static constexpr std::uint64_t kPage = 4096;  // of the staging memory

  /// Which block of a call it is, or whose part.
  struct PartOfPut {
    std::size_t put = 0;
    bool ends = true;  // it is the last part
  };

  /// A half of the staging memory, and the request that the holder has not answered yet.
  struct Half {
    std::uint64_t request = 0;        // 0: none
    std::size_t count = 0;            // of its items
    std::vector<PartOfPut> places{};  // of those among the statuses; none: the caller has gone
  };

  /// False: the key is not one.
  static bool fill_item(HolderItem& item, const shmemx_exchange_key_t& key, std::uint64_t layout);

  // REQUIRES: mutex_.
  /// Takes late answers, and connects. `most`: how long the call may take if the holder answers all the time.
  Result<void> begin(Clock::duration most);
  Result<void> attach();
  Result<void> take_attached(HolderSocket socket, const HolderBuffer& answer, HolderSocket::Files files);
  Result<void> wait(HolderSocket& socket, HolderBuffer& answer, HolderSocket::Files* files = nullptr);
  /// Waits for the answer to a request without blocks.
  Result<void> ask(const void* message, std::size_t bytes, std::uint64_t number, HolderBuffer& answer);
  Result<void> send(const void* message, std::size_t bytes);
  Result<void> settle(const HolderBuffer& answer, std::int32_t* statuses);
  Result<void> finish(Half& half, std::int32_t* statuses);
  /// Takes late answers of requests whose callers have gone. An Error if some are still missing.
  Result<void> take_late_answers();
  Error lost(std::errc code, const std::string& text);
  [[nodiscard]] Error problem(std::errc code, const std::string& text) const;
  void disconnect() noexcept;

  Exchange& exchange_;
  std::mutex mutex_;  // for the rest
  std::string tenant_;
  std::chrono::milliseconds answer_limit_{100};
  base::Disposal disposal_;
  HolderSocket socket_;
  base::Mapping staging_;
  std::optional<HolderEventReader> events_;
  std::uint64_t holder_ = 0;  // its id
  std::uint64_t most_bytes_ = 0;
  std::uint64_t last_request_ = 0;
  std::array<Half, 2> halves_;
  bool is_silent_ = false;        // it has not answered in time
  Clock::time_point next_try_{};  // to attach, after it has not answered
  Clock::time_point deadline_{};  // of the call
};

}  // namespace shmem::exchange
