// SPDX-License-Identifier: Apache-2.0
// Each command, cut short at every byte and with every field at its extremes.
#include <array>
#include <limits>

#include "tests/integration/fake_device/hostile/bystanders.hpp"

namespace {

using raw::bytes_of;
using raw::Client;

enum class Along { kNothing, kMemory, kEventfd };

/// A message that the device executes; the last ones are of commands that it does not support.
struct Example {
  std::uint16_t command;
  std::vector<std::byte> payload;
  Along along = Along::kNothing;
};

std::vector<std::byte> version_payload() {
  constexpr char kText[] = R"({"capabilities":{"max_msg_fds":8,"max_data_xfer_size":65536,"write_multiple":true}})";
  return raw::join(bytes_of(vfio_user_version{.major = 0, .minor = 0}), std::as_bytes(std::span(kText)));
}

std::vector<std::byte> region_info() {
  vfio_user_region_info info{};
  info.argsz = sizeof info;
  info.index = GBA_REGION_DOORBELLS;
  return bytes_of(info);
}

std::vector<std::byte> writes() {
  struct {
    std::uint64_t count = 2;
    std::array<vfio_user_write_multi_entry, 2> entries{
        {{.offset = 0x0c, .region = GBA_REGION_CONFIG, .count = 1, .data = {1}},
         {.offset = GBA_REG_CMD, .region = GBA_REGION_CONTROL, .count = 8, .data = {GBA_CMD_ALLOC}}}};
  } const payload;
  return bytes_of(payload);
}

std::vector<Example> examples() {
  const vfio_user_dma_map map{.argsz = sizeof map, .flags = 3, .offset = 0x1000, .address = 0x50000000, .size = 0x1000};
  const vfio_user_dma_unmap unmap{.argsz = sizeof unmap, .flags = 0, .address = 0x50000000, .size = 0x1000};
  const vfio_user_device_info device{.argsz = sizeof device, .flags = 0, .num_regions = 0, .num_irqs = 0};
  const vfio_user_region_io_fds kick{.argsz = 56, .flags = 0, .index = GBA_REGION_DOORBELLS, .count = 0};
  const vfio_user_irq_info irq{.argsz = sizeof irq, .flags = 0, .index = GBA_IRQ_MSIX, .count = 0};
  const vfio_user_irq_set arm{.argsz = sizeof arm, .flags = 0x24, .index = GBA_IRQ_MSIX, .start = 1, .count = 1};
  const vfio_user_irq_set fire{.argsz = sizeof fire, .flags = 0x22, .index = GBA_IRQ_MSIX, .start = 1, .count = 3};
  const vfio_user_region_access read{.offset = 0x40, .region = GBA_REGION_CONFIG, .count = 12};
  const vfio_user_region_access write{.offset = GBA_REG_FAULT, .region = GBA_REGION_CONTROL, .count = 8};
  const std::array<std::byte, 3> bools{std::byte{1}, std::byte{0}, std::byte{1}};
  return {
      {.command = VFIO_USER_VERSION, .payload = version_payload()},
      {.command = VFIO_USER_DMA_MAP, .payload = bytes_of(map), .along = Along::kMemory},
      {.command = VFIO_USER_DMA_UNMAP, .payload = bytes_of(unmap)},
      {.command = VFIO_USER_DMA_MAP, .payload = bytes_of(map)},
      {.command = VFIO_USER_DEVICE_GET_INFO, .payload = bytes_of(device)},
      {.command = VFIO_USER_DEVICE_GET_REGION_INFO, .payload = region_info()},
      {.command = VFIO_USER_DEVICE_GET_REGION_IO_FDS, .payload = bytes_of(kick)},
      {.command = VFIO_USER_DEVICE_GET_IRQ_INFO, .payload = bytes_of(irq)},
      {.command = VFIO_USER_DEVICE_SET_IRQS, .payload = bytes_of(arm), .along = Along::kEventfd},
      {.command = VFIO_USER_DEVICE_SET_IRQS, .payload = raw::join(bytes_of(fire), bools)},
      {.command = VFIO_USER_REGION_READ, .payload = bytes_of(read)},
      {.command = VFIO_USER_REGION_WRITE, .payload = raw::join(bytes_of(write), bytes_of(std::uint64_t{1}))},
      {.command = VFIO_USER_REGION_WRITE_MULTI, .payload = writes()},
      {.command = VFIO_USER_DEVICE_RESET, .payload = {}},
      {.command = VFIO_USER_DEVICE_FEATURE, .payload = std::vector<std::byte>(8)},
      {.command = VFIO_USER_MIG_DATA_READ, .payload = std::vector<std::byte>(8)},
      {.command = VFIO_USER_MIG_DATA_WRITE, .payload = std::vector<std::byte>(16)},
      {.command = VFIO_USER_DMA_READ, .payload = std::vector<std::byte>(16)},
      {.command = VFIO_USER_DMA_WRITE, .payload = std::vector<std::byte>(24)},
      {.command = 14, .payload = std::vector<std::byte>(16)},
  };
}

class Messages : public raw::Bystanders {
 protected:
  Messages() : memory_(raw::make_memfd(0x10000)), eventfd_(raw::make_eventfd()) {}

  /// A connection after VERSION, unless the example is VERSION itself.
  std::unique_ptr<Client> client_for(const Example& example) {
    auto client = std::make_unique<Client>(path());
    if (example.command != VFIO_USER_VERSION) {
      const auto frame = client->frame(VFIO_USER_VERSION, version_payload());
      client->send_bytes(frame);
      EXPECT_EQ(client->receive().value_or(raw::Reply{}).header.command, VFIO_USER_VERSION);
    }
    return client;
  }

  bool send(Client& client, std::span<const std::byte> bytes, Along along) {
    const std::array memory{memory_.get()};
    const std::array event{eventfd_.get()};
    switch (along) {
      case Along::kMemory:
        return client.send_bytes(bytes, memory);
      case Along::kEventfd:
        return client.send_bytes(bytes, event);
      case Along::kNothing:
        break;
    }
    return client.send_bytes(bytes);
  }

  /// Expects one reply, with or without an error, and an answer to the next message, unless a VERSION was refused.
  void expect_an_answer(Client& client, const Example& example, std::span<const std::byte> payload) {
    const auto frame = client.frame(example.command, payload);
    ASSERT_TRUE(send(client, frame, example.along));
    const auto reply = client.receive();
    ASSERT_TRUE(reply) << "closed";
    EXPECT_EQ(reply->header.command, example.command);
    EXPECT_TRUE(reply->error() == 0 || reply->payload.empty()) << "an error reply is only a header";
    if (example.command == VFIO_USER_VERSION && reply->error() != 0) {
      EXPECT_EQ(client.receive(), std::nullopt);
      return;
    }
    const vfio_user_device_info info{.argsz = sizeof info, .flags = 0, .num_regions = 0, .num_irqs = 0};
    EXPECT_EQ(client.call(VFIO_USER_DEVICE_GET_INFO, bytes_of(info)).error(), 0);
  }

  /// Sends the messages of this command over one connection; VERSION needs a new one each time.
  void play(const Example& example, const std::vector<std::vector<std::byte>>& payloads) {
    SCOPED_TRACE("command " + std::to_string(example.command));
    auto client = client_for(example);
    for (const auto& payload : payloads) {
      if (example.command == VFIO_USER_VERSION) {
        client = client_for(example);
      }
      expect_an_answer(*client, example, payload);
    }
  }

 private:
  raw::Fd memory_;
  raw::Fd eventfd_;
};

template <typename T>
std::vector<T> extremes() {
  constexpr T kMost = std::numeric_limits<T>::max();
  return {0, 1, kMost, static_cast<T>(kMost - 1), static_cast<T>(kMost / 2), static_cast<T>(kMost / 2 + 1)};
}

/// Copies of `payload`, with one T at a multiple of its size set to an extreme. All fields lie at multiples of their
/// size, except those after the first 4 bytes of VERSION.
template <typename T>
void add_extremes(const std::vector<std::byte>& payload, std::vector<std::vector<std::byte>>& out) {
  for (std::size_t at = 0; at + sizeof(T) <= payload.size(); at += sizeof(T)) {
    for (const T value : extremes<T>()) {
      out.push_back(payload);
      std::memcpy(out.back().data() + at, &value, sizeof value);
    }
  }
}

TEST_F(Messages, WithAnyFieldAtItsExtremesAreAnswered) {
  for (const auto& example : examples()) {
    std::vector<std::vector<std::byte>> payloads;
    add_extremes<std::uint32_t>(example.payload, payloads);
    add_extremes<std::uint64_t>(example.payload, payloads);
    if (example.command == VFIO_USER_VERSION) {
      add_extremes<std::uint16_t>(bytes_of(vfio_user_version{.major = 0, .minor = 0}), payloads);
    }
    play(example, payloads);
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Messages, OfAnyLengthAreAnswered) {
  for (const auto& example : examples()) {
    std::vector<std::vector<std::byte>> payloads;
    for (std::size_t length = 0; length <= example.payload.size() + 9; ++length) {
      payloads.push_back(example.payload);
      payloads.back().resize(length);
    }
    play(example, payloads);
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Messages, CutShortAtAnyByteHarmNoOtherClient) {
  for (const auto& example : examples()) {
    SCOPED_TRACE("command " + std::to_string(example.command));
    for (std::size_t cut = 0; cut <= example.payload.size() + sizeof(vfio_user_header); ++cut) {
      const auto client = client_for(example);
      const auto frame = client->frame(example.command, example.payload);
      ASSERT_TRUE(cut == 0 || send(*client, std::span(frame).first(cut), example.along));
    }
    expect_unharmed();
  }
  expect_no_files_left();
}

// A wrong length, type or command in a header may end the connection or leave it waiting for more bytes.
TEST_F(Messages, WithAnyHeaderFieldAtItsExtremesHarmNoOtherClient) {
  for (const auto& example : examples()) {
    std::vector<std::vector<std::byte>> frames;
    Client names_the_next(path());
    const auto frame = names_the_next.frame(example.command, example.payload);
    add_extremes<std::uint16_t>(std::vector(frame.begin(), frame.begin() + sizeof(vfio_user_header)), frames);
    add_extremes<std::uint32_t>(std::vector(frame.begin(), frame.begin() + sizeof(vfio_user_header)), frames);
    for (const auto& header : frames) {
      const auto client = client_for(example);
      send(*client, raw::join(header, example.payload), example.along);
    }
    expect_unharmed();
  }
  expect_no_files_left();
}

TEST_F(Messages, InAnyOrderAreAnswered) {
  auto all = examples();
  all.erase(all.begin());  // VERSION
  auto client = client_for(all.front());
  for (const auto& first : all) {
    for (const auto& second : all) {
      expect_an_answer(*client, first, first.payload);
      expect_an_answer(*client, second, second.payload);
    }
  }
  expect_unharmed();
}

}  // namespace
