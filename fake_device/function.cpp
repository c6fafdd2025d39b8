// SPDX-License-Identifier: Apache-2.0
#include "fake_device/function.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "fake_device/effects.hpp"

namespace fake_device {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kMsixEntry = 16;

bool is_bar(unsigned index) {
  return index == GBA_REGION_CONTROL || index == GBA_REGION_DOORBELLS || index == GBA_REGION_FLAGS;
}

// A register is at most 8 bytes; of a longer access the model sees the size and refuses it.
std::uint64_t to_value(std::span<const std::byte> data) {
  std::uint64_t value = 0;
  std::memcpy(&value, data.data(), std::min(data.size(), kWord));
  return value;
}

void from_value(std::uint64_t value, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  std::memcpy(out.data(), &value, std::min(out.size(), kWord));
}

// Device memory is shared with the client, so it is read and written as atomics, byte by byte where it is not words.
void read_pages(const SharedPages& pages, std::uint64_t offset, std::span<std::byte> out) {
  if (out.size() == kWord && offset % kWord == 0) {
    from_value(pages.at<std::uint64_t>(offset)->load(std::memory_order_acquire), out);
    return;
  }
  for (auto& byte : out) {
    byte = static_cast<std::byte>(pages.at<std::uint8_t>(offset++)->load(std::memory_order_relaxed));
  }
}

void write_pages(const SharedPages& pages, std::uint64_t offset, std::span<const std::byte> data) {
  if (data.size() == kWord && offset % kWord == 0) {
    pages.at<std::uint64_t>(offset)->store(to_value(data), std::memory_order_release);
    return;
  }
  for (const auto byte : data) {
    pages.at<std::uint8_t>(offset++)->store(std::to_integer<std::uint8_t>(byte), std::memory_order_relaxed);
  }
}

}  // namespace

Result<std::unique_ptr<Function>> Function::open(Engine& engine, unsigned port, FunctionClient& client,
                                                 InterruptQueue& interrupts, DmaPool& pool) {
  auto doorbells = SharedPages::create("gba-doorbells", GBA_BAR2_SIZE);
  if (!doorbells) {
    return doorbells.error();
  }
  auto flags = SharedPages::create("gba-flags", GBA_BAR4_SIZE);
  if (!flags) {
    return flags.error();
  }
  return std::unique_ptr<Function>(
      new Function(engine, port, client, interrupts, pool, *std::move(doorbells), *std::move(flags)));
}

Function::Function(Engine& engine, unsigned port, FunctionClient& client, InterruptQueue& interrupts, DmaPool& pool,
                   SharedPages doorbells, SharedPages flags)
    : engine_(engine),
      port_(port),
      client_(client),
      doorbells_(std::move(doorbells)),
      flags_(std::move(flags)),
      config_(GBA_PCI_VENDOR_ID, engine.profile().pci_device_id, engine.dimensions().vectors()),
      dma_(pool),
      irqs_(engine.dimensions().vectors(), interrupts),
      msix_table_(kMsixEntry * engine.dimensions().vectors()) {
  if (engine.injection() == FaultInjection::kByClients) {
    debug_.emplace(engine);
  }
  engine_.attach(port_, *this);
}

Function::~Function() {
  engine_.detach(port_, read_clock());
}

Function::Region Function::region(unsigned index) const {
  switch (index) {
    case GBA_REGION_CONTROL:
      return {.size = GBA_BAR0_SIZE, .exists = true};
    case GBA_REGION_DOORBELLS:
      return {.size = GBA_BAR2_SIZE, .exists = true, .fd = doorbells_.fd()};
    case GBA_REGION_FLAGS:
      return {.size = GBA_BAR4_SIZE, .exists = true, .fd = flags_.fd()};
    case GBA_REGION_CONFIG:
      return {.size = GBA_CONFIG_SIZE, .exists = true};
    case GBA_REGION_DEBUG:
      return debug_ ? Region{.size = GBA_DEBUG_REGION_SIZE,
                             .exists = true,
                             .type = GBA_DEBUG_REGION_TYPE,
                             .subtype = GBA_DEBUG_REGION_SUBTYPE}
                    : Region{};
    default:
      return {};
  }
}

int Function::read(unsigned index, std::uint64_t offset, std::span<std::byte> out, Time now) {
  const auto size = region(index).size;
  if (offset > size || out.size() > size - offset) {
    return EINVAL;
  }
  if (out.empty()) {
    return 0;
  }
  if (removed_ || (is_bar(index) && !config_.memory_enabled())) {  // uapi rules 36 and 2
    std::fill(out.begin(), out.end(), std::byte{0xff});
  } else if (index == GBA_REGION_CONFIG) {
    config_.read(offset, out);
  } else if (index == GBA_REGION_DEBUG) {
    from_value(debug_->read(offset, out.size()), out);
  } else if (index == GBA_REGION_CONTROL) {
    read_control(offset, out, now);
  } else {
    read_pages(index == GBA_REGION_DOORBELLS ? doorbells_ : flags_, offset, out);
  }
  return 0;
}

int Function::write(unsigned index, std::uint64_t offset, std::span<const std::byte> data, Time now) {
  const auto size = region(index).size;
  if (offset > size || data.size() > size - offset) {
    return EINVAL;
  }
  if (data.empty() || removed_ || (is_bar(index) && !config_.memory_enabled())) {
    return 0;
  }
  if (index == GBA_REGION_CONFIG) {
    write_config(offset, data, now);
  } else if (index == GBA_REGION_DEBUG) {
    write_debug(offset, data, now);
  } else if (index == GBA_REGION_CONTROL) {
    write_control(offset, data, now);
  } else if (index == GBA_REGION_DOORBELLS) {
    write_doorbell(offset, data, now);
  } else {
    write_pages(flags_, offset, data);
  }
  return 0;
}

std::span<std::byte> Function::msix_table(std::uint64_t offset, std::size_t size) {
  const bool natural = (size == 4 || size == kWord) && offset % size == 0;
  if (!natural || offset < GBA_MSIX_TABLE_OFFSET || offset - GBA_MSIX_TABLE_OFFSET > msix_table_.size() - size) {
    return {};
  }
  return std::span(msix_table_).subspan(offset - GBA_MSIX_TABLE_OFFSET, size);
}

bool Function::is_pending_word(std::uint64_t offset, std::size_t size) const {
  const std::uint64_t words = (engine_.dimensions().vectors() + 63) / 64;
  return size == kWord && offset % kWord == 0 && offset >= GBA_MSIX_PBA_OFFSET &&
         offset < GBA_MSIX_PBA_OFFSET + words * kWord;
}

void Function::read_control(std::uint64_t offset, std::span<std::byte> out, Time now) {
  const auto entry = msix_table(offset, out.size());
  if (!entry.empty()) {
    std::copy(entry.begin(), entry.end(), out.begin());
  } else if (is_pending_word(offset, out.size())) {
    from_value(irqs_.pending(static_cast<unsigned>((offset - GBA_MSIX_PBA_OFFSET) / kWord)), out);
  } else {
    from_value(engine_.read(port_, offset, out.size(), now), out);
  }
}

void Function::write_control(std::uint64_t offset, std::span<const std::byte> data, Time now) {
  const auto entry = msix_table(offset, data.size());
  if (!entry.empty()) {
    std::copy(data.begin(), data.end(), entry.begin());
  } else if (!is_pending_word(offset, data.size())) {  // which is read-only
    engine_.write(port_, offset, data.size(), to_value(data), now);
  }
}

void Function::write_doorbell(std::uint64_t offset, std::span<const std::byte> data, Time now) {  // uapi rule 19
  if (offset == GBA_DOORBELL_WAKEUP && data.size() == sizeof(std::uint32_t)) {
    kicked(now);
  } else if (data.size() == kWord && offset % GBA_DOORBELL_STRIDE == 0 &&
             offset / GBA_DOORBELL_STRIDE < engine_.dimensions().groups) {
    engine_.ring(port_, static_cast<unsigned>(offset / GBA_DOORBELL_STRIDE), to_value(data), now);
  } else {
    engine_.bad_doorbell(port_, offset, to_value(data));
  }
}

void Function::write_debug(std::uint64_t offset, std::span<const std::byte> data, Time now) {
  if (const auto said = debug_->write(offset, data.size(), to_value(data), now); !said.empty()) {
    client_.note(said);
  }
}

void Function::write_config(std::uint64_t offset, std::span<const std::byte> data, Time now) {
  if (config_.write(offset, data)) {
    reset(now);
  }
  engine_.set_decoding(port_, config_.memory_enabled());
  engine_.forget_memory(port_);  // bus master may have changed
}

void Function::reset(Time now) {
  if (!removed_) {
    engine_.reset(port_, now);
  }
}

// A client that has mapped the pages reads what a bus without a device gives.
void Function::removed() {
  removed_ = true;
  for (const SharedPages* const pages : {&doorbells_, &flags_}) {
    for (std::size_t offset = 0; offset < pages->size(); offset += kWord) {
      pages->at<std::uint64_t>(offset)->store(GBA_ALL_ONES, std::memory_order_relaxed);
    }
  }
}

int Function::kick_fd() {
  if (!kick_) {
    kick_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  return kick_.get();
}

// The eventfd is not read: its client has it too, and can make it blocking and empty at any time.
void Function::kicked(Time now) {
  engine_.sweep(port_, now);
}

int Function::map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint32_t flags, Given file) {
  const int error = dma_.map(address, size, offset, flags, std::move(file));
  engine_.forget_memory(port_);
  return error;
}

int Function::unmap(std::uint64_t address, std::uint64_t size) {
  engine_.forget_memory(port_);
  return dma_.unmap(address, size);
}

void Function::unmap_all() {
  engine_.forget_memory(port_);
  dma_.unmap_all();
}

std::optional<GuardedWord> Function::resolve(std::uint64_t iova) {
  return config_.bus_master() && !removed_ ? dma_.resolve(iova) : std::nullopt;
}

// Once, since a client can cause any number of them. The fault DMA does not tell the two causes apart. Other clients'
// work leads here, and must not fail for want of memory.
void Function::explain_lost_store(unsigned group, std::uint64_t iova) {
  if (removed_ || std::exchange(explained_lost_store_, true)) {
    return;
  }
  try {
    client_.warn(fmt::format("cannot store the flag of group {} at {:#x}: {}", group, iova,
                             config_.bus_master() ? "no DMA_MAP with write permission covers that address"
                                                  : "bus master is clear (uapi rule 2): write 6 to COMMAND"));
  } catch (const std::bad_alloc&) {
    // The register FAULT still says that it was not stored.
  }
}

bool Function::send_store(unsigned group, std::uint64_t iova, std::uint64_t word) {
  if (!config_.bus_master() || removed_ || !dma_.by_message(iova)) {
    explain_lost_store(group, iova);
    return false;
  }
  client_.send_store(group, iova, word);
  return true;
}

void Function::raise(unsigned vector) {
  if (config_.bus_master() && !removed_ && !client_.hold_interrupt(vector)) {
    fire(vector);
  }
}

}  // namespace fake_device
