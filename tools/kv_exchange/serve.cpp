// SPDX-License-Identifier: Apache-2.0
// serve: a member that holds blocks for others, until a signal ends it.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "tools/kv_exchange/arena.hpp"
#include "tools/kv_exchange/commands.hpp"

namespace kv_exchange {
namespace {

/// Between looks for blocks that others put.
constexpr double kBetweenRounds = 0.1;  // seconds

class Server {
 public:
  static Result<Server> open(const Options& options) {
    const char* const metrics = options.metrics.empty() ? nullptr : options.metrics.c_str();
    auto member = Member::open(options, {0, 0, options.lease_ms, 0, 0, {0, 0, 0}, metrics, nullptr});
    auto memory = member ? member->make_memory(options.room) : member.error();
    if (!memory) {
      return memory.error();
    }
    return Server(*std::move(member), *memory, options);
  }

  Result<void> publish_file(const std::string& path) {
    const auto bytes = read_file(path);
    if (!bytes) {
      return bytes.error();
    }
    const auto offset = make_room(path, bytes->size());
    if (!offset) {
      return offset.error();
    }
    std::memcpy(memory_ + *offset, bytes->data(), bytes->size());
    return publish(path, *offset, bytes->size());
  }

  /// Copies blocks that other members put. Failures are printed: the next look tries again.
  void take_over() {
    for (const auto& other : member_.others()) {
      for (const auto& listed : member_.list(other.seat, kPutPrefix)) {
        const auto taken = take(listed.key.substr(kPutPrefix.size()), listed.block);
        // Stale: whoever has put it has ended, since it is served by now.
        if (!taken && taken.error().code != static_cast<std::errc>(ESTALE) &&
            taken.error().code != std::errc::owner_dead) {
          complain(listed.key, taken.error().text);
        }
      }
    }
  }

  [[nodiscard]] shmemx_exchange_stats_t stats() { return member_.stats(); }
  [[nodiscard]] std::string address() const { return member_.address(); }
  [[nodiscard]] std::size_t blocks() const { return held_.size(); }

 private:
  struct Held {
    std::size_t offset, bytes;
    std::uint64_t digest;
  };

  Server(Member member, std::pair<std::uint32_t, std::byte*> memory, const Options& options)
      : member_(std::move(member)),
        region_(memory.first),
        memory_(memory.second),
        arena_(options.room),
        longest_lease_ns_((std::uint64_t{options.lease_ms} + 100) * 1'000'000) {}

  Result<void> take(const std::string& key, const shmemx_exchange_block_t& block) {
    const auto has = held_.find(key);
    if (key.empty() || (has != held_.end() && has->second.digest == block.layout) || member_.has(key, block.layout)) {
      return {};
    }
    const auto offset = make_room(key, block.bytes);
    if (!offset) {
      return offset.error();
    }
    auto pulled = member_.pull(block, memory_ + *offset);
    if (!pulled) {
      arena_.release(*offset, block.bytes);
      return pulled;
    }
    return publish(key, *offset, block.bytes);
  }

  /// Room for a block, also of a key that was served before: readers that still pull that have the time of a lease.
  Result<std::size_t> make_room(const std::string& key, std::size_t bytes) {
    if (bytes == 0) {
      return fail(std::errc::invalid_argument, key + " is empty; a block has at least 1 byte");
    }
    const auto offset = arena_.allocate(bytes);
    if (!offset) {
      return fail(std::errc::no_buffer_space,
                  fmt::format("there is no room for the {} bytes of {}; see --room", bytes, key));
    }
    return *offset;
  }

  Result<void> publish(const std::string& key, std::size_t offset, std::size_t bytes) {
    if (const auto old = held_.find(key); old != held_.end()) {
      if (auto withdrawn = member_.withdraw(key, longest_lease_ns_); !withdrawn) {
        arena_.release(offset, bytes);
        return withdrawn;
      }
      arena_.release(old->second.offset, old->second.bytes);
      held_.erase(old);
    }
    const std::span<const std::byte> content(memory_ + offset, bytes);
    auto published = member_.publish(key, region_, offset, content);
    if (!published) {
      arena_.release(offset, bytes);
      return published;
    }
    held_[key] = {offset, bytes, digest_of(content)};
    return {};
  }

  void complain(const std::string& key, const std::string& text) {
    if (complaints_[key] != text) {  // once, not at each look
      std::fprintf(stderr, "kv_exchange: %s\n", text.c_str());
      complaints_[key] = text;
    }
  }

  Member member_;
  std::uint32_t region_;
  std::byte* memory_;
  Arena arena_;
  std::uint64_t longest_lease_ns_;
  std::map<std::string, Held> held_;
  std::map<std::string, std::string> complaints_;
};

}  // namespace

Result<void> serve(const Options& options) {
  const EndSignals ends;
  auto server = Server::open(options);
  if (!server) {
    return server.error();
  }
  for (const auto& file : options.files) {
    if (auto published = server->publish_file(file); !published) {
      return published;
    }
  }
  const auto stats = server->stats();
  const std::string address = server->address();
  say("kv_exchange: serving {} block{} on seat {} of {}{}\n", server->blocks(), server->blocks() == 1 ? "" : "s",
      stats.seat, options.exchange, address.empty() ? "" : ", at " + address);
  if (stats.metrics_port != 0) {
    say("kv_exchange: metrics: /metrics on port {}\n", stats.metrics_port);
  }
  std::fflush(stdout);
  while (!ends.ended(kBetweenRounds)) {
    server->take_over();
  }
  return {};
}

}  // namespace kv_exchange
