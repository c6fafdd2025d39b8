// SPDX-License-Identifier: Apache-2.0
// A client of the session target that takes any step of the input, valid or not.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "fake_device/message.hpp"
#include "tests/fuzz/device.hpp"
#include "tests/fuzz/script.hpp"

namespace fuzz {

class Client {
 public:
  explicit Client(Device& device) : device_(device) {}

  /// Connects if it is not connected.
  void connect();
  void vanish() { socket_ = base::UniqueFd(); }
  void shut_down(unsigned how) const;

  void queue(std::uint16_t command, std::uint32_t flags, std::span<const std::byte> payload);
  void queue_bytes(std::span<const std::byte> bytes) { outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end()); }
  void bring(Descriptor kind);
  void cut_at(std::size_t length, bool drop_rest);
  void send();
  /// Reads up to `limit` bytes of replies.
  void read(std::size_t limit);
  void answer_store(std::uint32_t flags, std::size_t length);

  void store(unsigned which, std::size_t offset, std::uint64_t value) const;
  void misuse(unsigned which, Misuse how) const;
  void resize(unsigned which, unsigned pages);

 private:
  std::size_t send_some(std::size_t limit);
  void keep_reply(fake_device::VfioUserMessage message);
  int memory(unsigned which);
  [[nodiscard]] int received(unsigned which) const;
  base::UniqueFd make(Descriptor kind);

  Device& device_;
  base::UniqueFd socket_;
  std::vector<std::byte> outgoing_;
  std::vector<base::UniqueFd> fds_;
  std::size_t cut_ = 0;
  bool drop_rest_ = false;
  fake_device::MessageReader reader_;
  std::shared_ptr<fake_device::FdAccount> account_ = std::make_shared<fake_device::FdAccount>();
  std::deque<std::uint16_t> stores_;
  std::vector<fake_device::Given> received_;
  std::array<base::UniqueFd, 2> memory_;
};

}  // namespace fuzz
