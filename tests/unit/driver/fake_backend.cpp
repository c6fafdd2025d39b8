// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/driver/fake_backend.hpp"
#include "base/memfd.hpp"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace gba::test {

namespace {

std::uint64_t to_word(std::span<const std::byte> data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data.data(), data.size());
  return word;
}

}  // namespace

FakeState::FakeState() {
  doorbell_file = base::create_memfd("fake-doorbells", GBA_BAR2_SIZE).value();
  doorbells = map_shared(doorbell_file.get(), 0, GBA_BAR2_SIZE, "doorbells").value();
  loss = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  config = {{0x00, GBA_PCI_VENDOR_ID}, {0x02, GBA_PCI_DEVICE_ID}, {0x04, 0x0100}};
  regions = {{GBA_REGION_CONTROL, {.size = GBA_BAR0_SIZE, .mappable = false}},
             {GBA_REGION_DOORBELLS, {.size = GBA_BAR2_SIZE, .mappable = true}},
             {GBA_REGION_CONFIG, {.size = GBA_CONFIG_SIZE, .mappable = false}}};
  control = {{GBA_REG_MAGIC, GBA_MAGIC_VALUE},
             {GBA_REG_VERSION, GBA_FIELD_PUT(GBA_VERSION_MAJOR_FIELD, GBA_VERSION_MAJOR)},
             {GBA_REG_CAPS, GBA_FIELD_PUT(GBA_CAPS_GROUPS, GBA_MAX_GROUPS) |
                                GBA_FIELD_PUT(GBA_CAPS_MEMBERS, GBA_MAX_MEMBERS) | GBA_CAPS_WAKEUP | GBA_CAPS_NOTIFY},
             {GBA_REG_DEV_STATUS, GBA_DEV_STATUS_READY | GBA_DEV_STATUS_LINK_UP},
             {GBA_REG_PORT_ID, 5}};
}

std::uint64_t FakeState::release_address(std::uint32_t group, std::uint32_t member) {
  const std::lock_guard lock(mutex);
  return control.at(GBA_GROUP_BASE(group) + GBA_GROUP_RELEASE_ADDR + std::uint64_t{8} * member);
}

MmioWord<std::uint64_t> FakeState::flag(std::uint32_t group, std::uint32_t member) {
  const std::uint64_t address = release_address(group, member);
  const std::lock_guard lock(mutex);
  const auto range = std::prev(dma.upper_bound(address));
  return MmioRegion(range->second.memory).word<std::uint64_t>(address - range->first);
}

MmioWord<std::uint64_t> FakeState::flag_by_file(std::uint32_t group, std::uint32_t member) {
  const std::uint64_t address = release_address(group, member);
  const std::lock_guard lock(mutex);
  const auto range = std::prev(dma.upper_bound(address));
  return MmioRegion(range->second.by_file.bytes()).word<std::uint64_t>(address - range->first);
}

void FakeState::store_flag(std::uint32_t group, std::uint32_t member, std::uint64_t word) {
  flag(group, member).store(word);
}

MmioWord<std::uint64_t> FakeState::doorbell(std::uint32_t group) const {
  return MmioRegion(doorbells.bytes()).word<std::uint64_t>(GBA_DOORBELL_SLOT(group));
}

void FakeState::set_wakeup(std::uint32_t value) const {
  MmioRegion(doorbells.bytes()).word<std::uint32_t>(GBA_DOORBELL_WAKEUP).store(value);
}

void FakeState::interrupt(std::uint32_t vector) {
  const std::lock_guard lock(mutex);
  const auto eventfd = armed.find(vector);
  if (eventfd != armed.end()) {
    ::eventfd_write(eventfd->second, 1);
  }
}

void FakeState::lose() const {
  ::eventfd_write(loss.get(), 1);
}

std::size_t FakeState::count(const std::string& call) const {
  const std::lock_guard lock(mutex);
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), call));
}

Result<void> FakeBackend::enter(const std::string& call) {
  const bool fails = state_->failing_call == state_->calls++;
  if (lost()) {
    return loss_error();
  }
  if (state_->out_of_memory) {
    throw std::bad_alloc();
  }
  if (fails) {
    return fail(state_->failure, "fake: failed in " + call);
  }
  state_->log.push_back(call);
  return {};
}

Result<RegionInfo> FakeBackend::region_info(std::uint32_t region) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("region_info"); !entered) {
    return entered.error();
  }
  RegionInfo info = state_->regions[region];
  info.front = info.mappable ? info.size : 0;
  return info;
}

Result<void> FakeBackend::read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> data) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("read"); !entered) {
    return entered;
  }
  std::uint64_t word = (region == GBA_REGION_CONFIG ? state_->config : state_->control)[offset];
  if (region == GBA_REGION_CONTROL && offset == GBA_REG_CMD_STATUS && state_->busy_reads > 0) {
    --state_->busy_reads;
    word = GBA_FIELD_PUT(GBA_CMD_STATUS_BUSY, 1);
  }
  if (state_->removed) {
    word = GBA_ALL_ONES;
  }
  std::memcpy(data.data(), &word, data.size());
  return {};
}

void FakeBackend::run_command(std::uint64_t word) {
  const std::uint64_t opcode = GBA_FIELD_GET(GBA_CMD_OPCODE, word);
  state_->commands.push_back(word);
  state_->control[GBA_REG_CMD_STATUS] = state_->command_status[opcode];
  state_->control[GBA_REG_CMD_RESULT] = opcode == GBA_CMD_ALLOC ? state_->alloc_result : 0;
}

Result<void> FakeBackend::write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("write"); !entered) {
    return entered;
  }
  const std::uint64_t word = to_word(data);
  if (region == GBA_REGION_CONTROL && offset == GBA_REG_CMD) {
    run_command(word);
  } else if (region == GBA_REGION_CONTROL && offset == GBA_REG_FAULT) {
    state_->control[GBA_REG_FAULT] &= ~word;
  } else if (region == GBA_REGION_CONTROL && offset == GBA_REG_DEV_CONTROL && !state_->privileged) {
    state_->control[GBA_REG_FAULT] |= GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED);
  } else {
    (region == GBA_REGION_CONFIG ? state_->config : state_->control)[offset] = word;
  }
  return {};
}

Result<void> FakeBackend::post(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) {
  const std::lock_guard lock(state_->mutex);
  const bool kick = region == GBA_REGION_CONTROL && offset == GBA_REG_KICK && data.size() == 8;
  return enter(kick ? "kick" : "post");
}

Result<base::Mapping> FakeBackend::map(std::uint32_t region) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("map"); !entered) {
    return entered.error();
  }
  const bool control = region == GBA_REGION_CONTROL;
  return map_shared((control ? state_->control_file : state_->doorbell_file).get(), 0, state_->regions[region].size,
                    "a fake region");
}

Result<base::UniqueFd> FakeBackend::doorbell_eventfd(std::uint32_t region, std::uint64_t offset) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("doorbell_eventfd"); !entered) {
    return entered.error();
  }
  if (region != GBA_REGION_DOORBELLS || offset != GBA_DOORBELL_WAKEUP || !state_->kick) {
    return base::UniqueFd{};
  }
  return base::UniqueFd(::dup(state_->kick.get()));
}

Result<std::uint32_t> FakeBackend::irq_count(std::uint32_t index) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("irq_count"); !entered) {
    return entered.error();
  }
  return index == GBA_IRQ_MSIX ? state_->vectors : 0;
}

Result<void> FakeBackend::arm_irq(std::uint32_t /*index*/, std::uint32_t vector, int eventfd) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("arm_irq"); !entered) {
    return entered;
  }
  if (state_->out_of_vectors) {
    return fail(std::errc::no_space_on_device, "fake: 2 vectors for it, 33 are needed");
  }
  state_->armed[vector] = eventfd;
  return {};
}

Result<void> FakeBackend::disarm_irq(std::uint32_t /*index*/, std::uint32_t vector) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("disarm_irq"); !entered) {
    return entered;
  }
  state_->armed.erase(vector);
  return {};
}

Result<void> FakeBackend::dma_map(const DmaBuffer& buffer, std::uint64_t iova) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("dma_map"); !entered) {
    return entered;
  }
  if (!state_->gives_dma || buffer.memory.size() > state_->largest_dma) {
    return fail(std::errc::operation_not_permitted, "fake: no DMA here");
  }
  auto mapping = map_shared(buffer.fd, 0, buffer.memory.size(), "the driver's flags");
  if (!mapping) {
    return mapping.error();
  }
  if (!state_->dma.emplace(iova, DmaRange{*std::move(mapping), buffer.memory}).second) {
    throw std::logic_error("IOVA mapped twice");
  }
  return {};
}

Result<void> FakeBackend::dma_unmap(std::uint64_t iova, std::size_t /*size*/) {
  const std::lock_guard lock(state_->mutex);
  if (auto entered = enter("dma_unmap"); !entered) {
    return entered;
  }
  if (state_->dma.erase(iova) != 1) {
    throw std::logic_error("IOVA was not mapped");
  }
  return {};
}

Result<void> FakeBackend::reset() {
  const std::lock_guard lock(state_->mutex);
  return enter("reset");
}

}  // namespace gba::test
