// SPDX-License-Identifier: Apache-2.0
// A minimal vfio-user client for tests, which can also send messages that a correct client never sends. Shares no code
// with the server or the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "uapi/gba_regs.h"
#include "uapi/vfio_user.h"

namespace raw {

using Fd = base::UniqueFd;

/// The mapped memory of a descriptor; the object unmaps it.
class Memory {
 public:
  Memory() = default;
  Memory(int fd, std::size_t size);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::size_t offset) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(static_cast<std::byte*>(base_) + offset);
  }
  [[nodiscard]] std::atomic<std::uint32_t>& half(std::size_t offset) const {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(static_cast<std::byte*>(base_) + offset);
  }

 private:
  void* base_ = nullptr;
  std::size_t size_ = 0;
};

Fd make_memfd(std::size_t size);
Fd make_eventfd();
/// The count of an eventfd, waiting up to `seconds` for one.
std::uint64_t wait_event(int eventfd, double seconds = 20);

struct Reply {
  vfio_user_header header{};
  std::vector<std::byte> payload;
  std::vector<Fd> fds;

  [[nodiscard]] int error() const { return (header.flags & VFIO_USER_ERROR) != 0 ? static_cast<int>(header.error) : 0; }
  template <typename T>
  [[nodiscard]] T as(std::size_t offset = 0) const {
    T value{};
    if (payload.size() >= offset + sizeof value) {
      std::memcpy(&value, payload.data() + offset, sizeof value);
    }
    return value;
  }
};

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}
std::vector<std::byte> join(std::vector<std::byte> head, std::span<const std::byte> tail);

/// The capabilities that clients send.
inline constexpr const char* kVersion = R"({"capabilities":{"max_msg_fds":8}})";
inline constexpr const char* kVersionWithWriteMultiple = R"({"capabilities":{"max_msg_fds":8,"write_multiple":true}})";

/// One connection.
class Client {
 public:
  /// Connects; throws std::system_error if no server listens.
  explicit Client(const std::string& path);

  [[nodiscard]] int socket() const { return socket_.get(); }
  void close() { socket_ = Fd(); }

  /// A whole message, header included, as it is sent.
  std::vector<std::byte> frame(std::uint16_t command, std::span<const std::byte> payload,
                               std::uint32_t flags = VFIO_USER_TYPE_COMMAND);
  /// False if the server has closed the connection.
  bool send_bytes(std::span<const std::byte> bytes, std::span<const int> fds = {});
  /// Returns nothing if the server has closed the connection; throws if no message comes for 20 s.
  std::optional<Reply> receive();
  /// Sends a command and returns its reply; throws if the server closes the connection instead.
  Reply call(std::uint16_t command, std::span<const std::byte> payload, std::span<const int> fds = {});

  Reply version(const std::string& json = kVersion, std::uint16_t major = 0);

 private:
  Fd socket_;
  std::uint16_t next_id_ = 1;
};

/// Answers a DMA_WRITE; the word is for the caller to store. False: the server has closed.
bool answer(Client& client, const Reply& store, std::uint32_t flags = VFIO_USER_TYPE_REPLY);

inline constexpr std::uint64_t kFlagIova = 0x100000;

/// Flags in memory: mapped at kFlagIova, and sealed then, so that the device stores to it directly.
struct FlagMemory {
  std::size_t size = 0x1000;
  bool sealed = true;
};

/// From now on no page of it can be taken away, nor can it be mapped for writing.
void seal(int fd);

/// A connection that is a port: BARs mapped, bus master set, flags mapped for DMA.
class Port {
 public:
  explicit Port(const std::string& path, const std::string& version = kVersion, FlagMemory flags = {});

  Client& client() { return client_; }
  std::uint64_t read(std::uint64_t offset, std::uint32_t size = 8, std::uint32_t region = GBA_REGION_CONTROL);
  /// Returns the errno of the reply.
  int write(std::uint64_t offset, std::uint64_t value, std::uint32_t size = 8,
            std::uint32_t region = GBA_REGION_CONTROL);
  int map_dma(std::uint64_t iova, std::uint64_t size, std::uint64_t offset, int fd, std::uint32_t flags = 3);
  int unmap_dma(std::uint64_t iova, std::uint64_t size, std::uint32_t flags = 0);
  int arm(unsigned index, unsigned start, std::span<const int> eventfds);

  /// CMD_STATUS error code; `result` is CMD_RESULT.
  unsigned command(unsigned opcode, unsigned group = 0, unsigned member = 0, std::uint32_t key = 0);
  std::uint64_t result() { return read(GBA_REG_CMD_RESULT); }

  struct Group {
    unsigned id;
    std::uint32_t key;
  };
  /// Allocates and configures a group of members 0..members-1, enabled, with interrupts on.
  Group make_group(unsigned members, std::uint64_t sequence = 0);
  /// Joins, and puts the flag into this port's DMA memory.
  void join(const Group& group, unsigned member);
  void arrive(const Group& group, unsigned member, std::uint64_t sequence, bool notify = false);
  /// The flag word once it is not `before`, waiting up to 20 s.
  std::uint64_t wait_flag(const Group& group, std::uint64_t before);
  std::uint64_t flag(const Group& group) const;
  [[nodiscard]] Memory& doorbells() { return doorbells_; }
  [[nodiscard]] Memory& bar_flags() { return bar_flags_; }
  [[nodiscard]] int flag_fd() const { return flag_fd_.get(); }
  void kick();

 private:
  Fd map_region(unsigned index, Memory& memory, std::size_t size);
  void find_kick();

  Client client_;
  Memory doorbells_;
  Memory bar_flags_;
  Fd flag_fd_;
  Memory flags_;
  Fd kick_;
};

}  // namespace raw
