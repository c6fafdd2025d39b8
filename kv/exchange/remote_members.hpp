// SPDX-License-Identifier: Apache-2.0
// The members of an exchange on other nodes: the links to them, what they read here, and what is read there.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/kernel.hpp"
#include "kv/exchange/channel.hpp"
#include "kv/exchange/counters.hpp"
#include "kv/exchange/links.hpp"
#include "kv/exchange/remote_peer.hpp"
#include "kv/exchange/remote_readers.hpp"
#include "shmem/result.hpp"
#include "wire/message_port.hpp"

namespace shmem::exchange {

/// Members on other nodes have seats from here on, which each member gives them for itself.
constexpr std::uint32_t kFirstRemoteSeat = kMostMembers;

using RemotePeerList = std::vector<std::shared_ptr<RemotePeer>>;
using RemotePeers = std::shared_ptr<const RemotePeerList>;

struct RemoteSettings {
  std::string exchange{};
  std::string secret{};
  std::string host_id{};  // SHMEM_HOST_ID
  std::string folder{};   // MeetingPlace::folder
  bool rdma_only = false;
  std::uint64_t member = 0;
  RemoteReaders::Limits limits{};
  std::chrono::milliseconds answer_limit{5000};
};

/// Equal for members that see each other as members of one node: MeetingPlace. Copies of a virtual machine that meet in
/// a folder need different `host_id`.
std::uint64_t node_number(const base::Machine& machine, const std::string& host_id, const std::string& folder);

/// Thread-safe.
class RemoteMembers {
 public:
  /// `directory` is that of this member, whose memory outlives this, as `counters` does.
  static Result<std::unique_ptr<RemoteMembers>> open(DirectoryReader directory, const RemoteSettings& settings,
                                                     Counters& counters);
  RemoteMembers(const RemoteMembers&) = delete;
  RemoteMembers& operator=(const RemoteMembers&) = delete;
  ~RemoteMembers();

  /// Listens at `place`, or at any port if it has none. Called once; no member can connect before.
  Result<void> listen(Endpoint place);
  /// As those of Links. REQUIRES: listen() has succeeded.
  void look_for(const std::vector<Endpoint>& seeds) { links_->look_for(seeds); }
  Result<void> await_seeds(std::chrono::milliseconds limit) { return links_->await_seeds(limit); }
  /// "192.0.2.1:4711"
  [[nodiscard]] const std::string& place() const { return place_; }

  /// As the owner of blocks.
  [[nodiscard]] RemoteReaders& readers() { return readers_; }

  // As a reader.
  [[nodiscard]] RemotePeers peers() const {
    const std::lock_guard lock(mutex_);
    return peers_;
  }
  /// Finds the keys of those blocks that have not been found, at all members at once.
  void find(std::span<const Key> keys, std::uint64_t layout, std::uint32_t lease_ms, std::span<Block> blocks);
  /// Describes as many as there is room for. Returns the number of members.
  std::size_t describe(std::span<shmemx_exchange_member_t> members);
  Result<int> list(std::uint32_t seat, std::uint64_t& cursor, std::span<shmemx_exchange_name_t> names, Block* blocks);
  /// Ends the leases of the blocks that are of members on other nodes.
  void release(std::span<const Block> blocks);

 private:
  RemoteMembers(DirectoryReader directory, const RemoteSettings& settings, Counters& counters);
  [[nodiscard]] LinkHandlers link_handlers();
  [[nodiscard]] wire::PortHandlers port_handlers();
  void receive(std::span<const std::byte> head, std::span<const std::byte> body);
  void welcome(std::uint64_t route);
  void lose(std::uint64_t route);
  [[nodiscard]] std::optional<std::uint64_t> session_of(std::uint64_t route) const;
  void drop(std::uint64_t session, std::chrono::milliseconds pause = {});
  void note_silence(const std::string& place, std::uint64_t session);
  bool add_reader(LinkedReader reader);
  void remove_reader(std::uint64_t session);
  bool add_owner(LinkedOwner owner);
  void remove_owner(std::uint64_t session);
  [[nodiscard]] std::shared_ptr<RemotePeer> find_session(std::uint64_t session) const;
  void close_route(std::uint64_t session);
  void list_peers();

  Counters& counters_;
  const RemoteSettings settings_;
  std::string place_;
  RemoteReaders readers_;
  std::unique_ptr<MessagePort> port_;

  mutable std::mutex mutex_;  // for the next three
  std::map<std::uint64_t, std::shared_ptr<RemotePeer>> by_session_;
  std::map<std::uint64_t, std::uint64_t> routes_;  // of sessions
  RemotePeers peers_ = std::make_shared<const RemotePeerList>();

  /// How often a member has not answered calls, which then waited for it.
  struct Silence {
    unsigned times = 0;
    std::chrono::steady_clock::time_point last{};
  };
  std::mutex silences_mutex_;                // for the next
  std::map<std::string, Silence> silences_;  // by place

  std::mutex links_mutex_;  // for drop(), while links_ is made or destroyed
  std::unique_ptr<Links> links_;
};

}  // namespace shmem::exchange
