// SPDX-License-Identifier: Apache-2.0
// The members that read from this one, and what they get from it: its directory, its regions, a board for their leases.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "base/disposal.hpp"
#include "base/fd.hpp"
#include "kv/exchange/channel.hpp"
#include "kv/exchange/leases.hpp"
#include "kv/exchange/memory.hpp"

namespace shmem::exchange {

/// What a member tells each reader.
struct Self {
  std::uint64_t id = 0;
  int directory = -1;  // its file
  std::uint32_t slots = 0;
  std::uint32_t quota = 0;
  std::uint32_t lease_ms = 0;
  bool wants_use = false;

  [[nodiscard]] ChannelMessage message(Kind kind, std::uint32_t number) const {
    ChannelMessage message;
    message.kind = kind;
    message.member = id;
    message.number = number;
    return message;
  }
};

/// Thread-safe, but for what one thread alone may call.
class Readers {
 public:
  struct Region {
    base::UniqueFd file;
    FileRange range;
  };

  /// `disposal` outlives this, and gets what readers have sent.
  Readers(const Self& self, base::Disposal& disposal) : self_(self), disposal_(disposal) {}
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  ~Readers();

  // Any thread.
  /// Those that have said hello.
  [[nodiscard]] std::size_t count() const;
  /// Readers, also later ones, get the file, which this owns from now on.
  void add_region(std::uint32_t number, base::UniqueFd file, const FileRange& range);
  void remove_region(std::uint32_t number);
  /// Duplicates of the files.
  [[nodiscard]] std::map<std::uint32_t, Region> regions() const;
  /// A reader has a lease of this slot.
  [[nodiscard]] bool is_leased(std::uint32_t slot, std::uint32_t now) const;
  /// A reader has used the block in this slot since the last call. REQUIRES: Self::wants_use.
  [[nodiscard]] bool take_use(std::uint32_t slot) const;
  /// The slots below `end` of which that is so, up to about `most` for each reader.
  std::vector<std::uint32_t> take_used(std::uint32_t end, std::size_t most);

  // One thread, which alone changes who the readers are.
  /// Also those that have said nothing yet.
  [[nodiscard]] std::size_t size() const { return readers_.size(); }
  [[nodiscard]] int fd(std::size_t i) const { return readers_[i]->channel.fd(); }
  /// False: there is no room for another one.
  bool add(Channel channel);
  /// What reader `i` has sent. If its connection is over, those after it move up.
  struct Said {
    std::optional<std::uint32_t> seat = {};  // of its hello
    std::errc refusal{};                     // it does not follow the protocol, or has ended
    pid_t pid = -1;
  };
  Said read(std::size_t i);

 private:
  /// Until it has said hello, nothing but a connection.
  struct Reader {
    Channel channel;
    std::unique_ptr<LeaseBoard> board;
  };

  // REQUIRES: mutex_.
  bool make_room();
  bool answer(Reader& reader, Said& said);
  bool welcome(Reader& reader);
  bool send_region(Reader& reader, std::uint32_t number, const Region& region);

  void end(std::unique_ptr<Reader> reader) noexcept;

  const Self self_;
  base::Disposal& disposal_;
  mutable std::mutex mutex_;  // for the two below
  std::vector<std::unique_ptr<Reader>> readers_;
  std::map<std::uint32_t, Region> regions_;
};

}  // namespace shmem::exchange
