// SPDX-License-Identifier: Apache-2.0
// An engine that is connected to the holder.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/mapping.hpp"
#include "kv/exchange/holder_blocks.hpp"
#include "kv/exchange/holder_socket.hpp"

namespace shmem::exchange {

/// Used by the holder's thread. The engine may send anything, write anything into its staging memory at any time, and
/// stop or end at any time.
class HolderSession {
 public:
  HolderSession(HolderSocket socket, HeldBlocks& blocks, std::uint64_t holder)
      : socket_(std::move(socket)), blocks_(blocks), holder_(holder) {}
  HolderSession(const HolderSession&) = delete;
  HolderSession& operator=(const HolderSession&) = delete;
  /// Ends the lease of the range that the engine was writing, of which nothing was published.
  ~HolderSession() { abandon(); }

  [[nodiscard]] int fd() const { return socket_.fd(); }
  [[nodiscard]] bool is_attached() const { return static_cast<bool>(staging_); }
  [[nodiscard]] bool is_writing() const { return writing_ != nullptr; }
  void shut() { socket_.shut(); }
  /// What takes long to end: the connection, and what came with it.
  [[nodiscard]] HolderSocket release() { return std::move(socket_); }
  /// Ends the lease of a range if the engine has written nothing for a while.
  void end_late_writing(std::chrono::steady_clock::time_point now);

  /// Takes a message, and answers it. False: the connection is over. `stats`: what to answer kAskStats with.
  bool serve(const shmemx_exchange_holder_stats_t& stats);
  /// The same, unless it is another one's turn: what a message costs, such as room for a large block, counts, so that
  /// no engine has more than its part of the holder's time. `engines`: that share it.
  bool serve_in_turn(const shmemx_exchange_holder_stats_t& stats, std::size_t engines);
  /// It is not its turn before.
  [[nodiscard]] std::chrono::steady_clock::time_point next_turn() const { return next_turn_; }

 private:
  struct Open {
    HeldBlocks::Writing writing;
    std::uint64_t done = 0;  // bytes
    std::chrono::steady_clock::time_point deadline;
  };

  bool attach(const HolderAttach& request);
  bool refuse(int code, const std::string& text);
  [[nodiscard]] bool is_modest(const HolderItems& request) const;
  bool answer_items(const HolderItems& request);
  std::errc put(const HolderItem& item);
  std::errc put_whole(const HolderItem& item, const Key& key);
  std::errc put_part(const HolderItem& item, const Key& key);
  std::errc publish(const HeldBlocks::Writing& writing);
  std::errc change(HolderKind kind, const HolderItem& item);
  bool send(const void* message, std::size_t bytes) { return socket_.send(message, bytes) == std::errc{}; }
  void abandon();

  HolderSocket socket_;
  HeldBlocks& blocks_;
  const std::uint64_t holder_;
  base::Mapping staging_;
  std::uint32_t tenant_ = 0;
  std::unique_ptr<Open> writing_;
  std::chrono::steady_clock::time_point next_turn_{};
  HolderBuffer buffer_;
};

}  // namespace shmem::exchange
