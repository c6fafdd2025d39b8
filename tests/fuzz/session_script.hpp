// SPDX-License-Identifier: Apache-2.0
// Writes inputs of the session target, step by step.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tests/fuzz/script.hpp"
#include "uapi/gba_regs.h"
#include "uapi/vfio_user.h"

namespace fuzz {

class Script {
 public:
  // ---- The steps of script.hpp
  Script& send(std::uint8_t command, std::uint8_t flags = 0) { return message(Step::kCommand, command, {}, flags); }
  template <typename T>
  Script& send(std::uint8_t command, const T& payload, std::uint8_t flags = 0) {
    return message(Step::kCommand, command, std::as_bytes(std::span(&payload, 1)), flags);
  }
  Script& message(Step step, std::uint8_t command, std::span<const std::byte> payload, std::uint8_t flags = 0) {
    return step_of(step, command, flags, static_cast<std::uint16_t>(payload.size())).append(payload);
  }
  Script& raw(std::span<const std::byte> bytes) {
    return step_of(Step::kRaw, static_cast<std::uint16_t>(bytes.size())).append(bytes);
  }
  Script& bring(std::initializer_list<Descriptor> kinds) {
    step_of(Step::kDescriptors, static_cast<std::uint8_t>(kinds.size()));
    for (const auto kind : kinds) {
      put(kind);
    }
    return *this;
  }
  Script& cut(std::uint16_t length, bool drop_rest = false) {
    return step_of(Step::kCut, length, static_cast<std::uint8_t>(drop_rest ? 1 : 0));
  }
  Script& read(std::uint16_t limit = 0xffff) { return step_of(Step::kRead, limit); }
  Script& answer(std::uint8_t flags = 0, std::uint16_t length = 16) { return step_of(Step::kAnswer, flags, length); }
  Script& store(std::uint8_t which, std::uint16_t offset, std::uint64_t value) {
    return step_of(Step::kStore, which, offset, value);
  }
  Script& misuse(std::uint8_t which, Misuse how) { return step_of(Step::kMisuse, which, how); }
  Script& resize(std::uint8_t file, std::uint8_t pages) { return step_of(Step::kResize, file, pages); }
  Script& client(std::uint8_t number) { return step_of(Step::kClient, number); }
  Script& vanish() { return step_of(Step::kVanish); }
  Script& shut_down(std::uint8_t direction) { return step_of(Step::kShutDown, direction); }
  Script& tick(std::uint8_t power) { return step_of(Step::kTick, power); }
  Script& join(std::uint8_t owner, std::uint8_t member) { return step_of(Step::kJoin, owner, member); }
  Script& sleep() { return step_of(Step::kSleep); }
  Script& barrier() { return step_of(Step::kBarrier); }

  // ---- Messages
  Script& version(const std::string& json = R"({"capabilities":{"max_msg_fds":8,"write_multiple":true}})") {
    const vfio_user_version version{.major = VFIO_USER_MAJOR, .minor = VFIO_USER_MINOR};
    step_of(Step::kCommand, std::uint8_t{VFIO_USER_VERSION}, std::uint8_t{0},
            static_cast<std::uint16_t>(sizeof version + json.size() + 1));
    return put(version).append(std::as_bytes(std::span(json.c_str(), json.size() + 1)));
  }
  Script& map(std::uint64_t address, std::uint64_t size, std::uint64_t offset = 0, std::uint32_t flags = 3) {
    return send(
        VFIO_USER_DMA_MAP,
        vfio_user_dma_map{
            .argsz = sizeof(vfio_user_dma_map), .flags = flags, .offset = offset, .address = address, .size = size});
  }
  Script& unmap(std::uint64_t address, std::uint64_t size, std::uint32_t flags = 0) {
    return send(
        VFIO_USER_DMA_UNMAP,
        vfio_user_dma_unmap{.argsz = sizeof(vfio_user_dma_unmap), .flags = flags, .address = address, .size = size});
  }
  Script& set_irqs(std::uint32_t flags, std::uint32_t index, std::uint32_t start, std::uint32_t count,
                   std::initializer_list<std::uint8_t> bools = {}) {
    const vfio_user_irq_set set{.argsz = sizeof set, .flags = flags, .index = index, .start = start, .count = count};
    step_of(Step::kCommand, std::uint8_t{VFIO_USER_DEVICE_SET_IRQS}, std::uint8_t{0},
            static_cast<std::uint16_t>(sizeof set + bools.size()));
    return put(set).append(std::as_bytes(std::span(bools.begin(), bools.size())));
  }
  Script& region_info(std::uint32_t index, std::uint32_t argsz = sizeof(vfio_user_region_info)) {
    vfio_user_region_info info{};
    info.argsz = argsz;
    info.index = index;
    return send(VFIO_USER_DEVICE_GET_REGION_INFO, info);
  }
  Script& region_read(std::uint32_t region, std::uint64_t offset, std::uint32_t count) {
    return send(VFIO_USER_REGION_READ, vfio_user_region_access{.offset = offset, .region = region, .count = count});
  }
  Script& region_write(std::uint32_t region, std::uint64_t offset, std::uint64_t value, std::uint32_t count = 8,
                       std::uint8_t flags = 0) {
    const vfio_user_region_access access{.offset = offset, .region = region, .count = count};
    step_of(Step::kCommand, std::uint8_t{VFIO_USER_REGION_WRITE}, flags,
            static_cast<std::uint16_t>(sizeof access + count));
    return put(access).append(std::as_bytes(std::span(&value, 1)).first(count));
  }

  // ---- Sequences of several messages
  /// Opens a port with bus mastering enabled.
  Script& open() { return version().region_write(GBA_REGION_CONFIG, 4, 6, 2); }
  /// Afterwards the descriptor of the doorbells is the last one received.
  Script& take_doorbells() { return region_info(GBA_REGION_DOORBELLS).read(); }
  Script& command(std::uint64_t opcode, std::uint64_t group = 0, std::uint64_t member = 0, std::uint64_t key = 0) {
    return region_write(GBA_REGION_CONTROL, GBA_REG_CMD,
                        GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) | GBA_FIELD_PUT(GBA_CMD_GROUP, group) |
                            GBA_FIELD_PUT(GBA_CMD_MEMBER, member) | GBA_FIELD_PUT(GBA_CMD_KEY, key));
  }
  /// The first group that clients get is 1: the well-behaved members have 0.
  Script& make_group(unsigned members, std::uint64_t timeout = 0) {
    constexpr std::uint64_t kBase = GBA_GROUP_BASE(1);
    return command(GBA_CMD_ALLOC)
        .region_write(GBA_REGION_CONTROL, kBase + GBA_GROUP_MEMBER_COUNT, members, 4)
        .region_write(GBA_REGION_CONTROL, kBase + GBA_GROUP_MEMBER_MASK, (std::uint64_t{1} << members) - 1)
        .region_write(GBA_REGION_CONTROL, kBase + GBA_GROUP_TIMEOUT, timeout)
        .region_write(GBA_REGION_CONTROL, kBase + GBA_GROUP_CONTROL,
                      GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  }
  Script& release_to(unsigned member, std::uint64_t address) {
    return region_write(GBA_REGION_CONTROL, GBA_GROUP_BASE(1) + GBA_GROUP_RELEASE_ADDR + std::uint64_t{8} * member,
                        address);
  }
  static std::uint64_t arrival(std::uint64_t sequence, unsigned member, bool notify = true) {
    return GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, sequence) | GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, member) |
           GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1) | GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, notify ? 1 : 0);
  }
  /// Arrives by a message.
  Script& arrive(std::uint64_t sequence, unsigned member = 0) {
    return region_write(GBA_REGION_DOORBELLS, GBA_DOORBELL_SLOT(1), arrival(sequence, member));
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  operator std::vector<std::byte>() const { return bytes_; }  // NOLINT(google-explicit-constructor)

 private:
  template <typename T>
  Script& put(const T& value) {
    return append(std::as_bytes(std::span(&value, 1)));
  }
  Script& append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  template <typename... Arguments>
  Script& step_of(Step step, const Arguments&... arguments) {
    put(step);
    (put(arguments), ...);
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace fuzz
