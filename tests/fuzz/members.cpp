// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/members.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tests/fuzz/check.hpp"

namespace fuzz {
namespace {

constexpr std::uint64_t kIova = 0x7000'0000;
constexpr std::size_t kMemory = 4096;
constexpr std::size_t kCommandRegister = 4;  // in PCI config space
constexpr std::uint16_t kMemoryAndMaster = 0x6;

std::uint64_t load(const std::byte* at) {
  return reinterpret_cast<const std::atomic<std::uint64_t>*>(at)->load(std::memory_order_acquire);
}

}  // namespace

Member::Member(Device& device, unsigned port) : device_(device) {
  auto function = fake_device::Function::open(device.engine(), port, *this, device.interrupts(), device.dma_pool());
  check(function.has_value(), "a function can be opened");
  function_ = *std::move(function);
  const auto bits = std::as_bytes(std::span(&kMemoryAndMaster, 1));
  function_->write(GBA_REGION_CONFIG, kCommandRegister, bits, device_.now());
}

std::uint64_t Member::read(std::uint64_t offset, std::size_t size) {
  std::uint64_t value = 0;
  const auto bytes = std::as_writable_bytes(std::span(&value, 1)).first(size);
  check(function_->read(GBA_REGION_CONTROL, offset, bytes, device_.now()) == 0, "a register can be read");
  return value;
}

void Member::write(std::uint64_t offset, std::uint64_t value, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(&value, 1)).first(size);
  check(function_->write(GBA_REGION_CONTROL, offset, bytes, device_.now()) == 0, "a register can be written");
}

unsigned Member::command(unsigned opcode, unsigned group, unsigned member, std::uint32_t key) {
  write(GBA_REG_CMD, GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) | GBA_FIELD_PUT(GBA_CMD_GROUP, group) |
                         GBA_FIELD_PUT(GBA_CMD_MEMBER, member) | GBA_FIELD_PUT(GBA_CMD_KEY, key));
  return static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, read(GBA_REG_CMD_STATUS)));
}

fake_device::Given Member::given(base::UniqueFd fd) {
  return {device_.closer(), std::make_shared<fake_device::FdAccount>(), std::move(fd)};
}

void Member::give_memory() {
  base::UniqueFd file(::memfd_create("member", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  check(file && ::ftruncate(file.get(), kMemory) == 0, "memory can be made");
  memory_ = base::Mapping(::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0), kMemory);
  check(function_->map(kIova, kMemory, 0, VFIO_USER_DMA_READABLE | VFIO_USER_DMA_WRITABLE,
                       given(base::UniqueFd(::dup(file.get())))) == 0,
        "memory can be mapped");
  check(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE) == 0, "memory can be sealed");
}

void Member::take_interrupts(unsigned vector) {
  eventfd_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::vector<fake_device::Given> fds;
  fds.push_back(given(base::UniqueFd(::dup(eventfd_.get()))));
  check(function_->set_irqs(GBA_IRQ_MSIX, VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER, vector, 1, {},
                            std::move(fds)) == 0,
        "an interrupt can be armed");
}

void Member::join(unsigned group, std::uint32_t key, unsigned member) {
  take_interrupts(group);
  check(command(GBA_CMD_JOIN, group, member, key) == GBA_CMD_OK, "a member can join");
  if (member == 0) {
    give_memory();
    write(GBA_GROUP_BASE(group) + GBA_GROUP_RELEASE_ADDR, kIova);
  }
}

void Member::ring(unsigned group, unsigned member, std::uint64_t sequence) {
  const auto word = GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, sequence) | GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, member) |
                    GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1) | GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, 1);
  function_->doorbells().at<std::uint64_t>(GBA_DOORBELL_SLOT(group))->store(word, std::memory_order_release);
}

std::uint64_t Member::flag(unsigned group) const {
  return load(memory_ ? memory_.data() : function_->flags().data() + std::size_t{group} * GBA_FLAG_STRIDE);
}

std::uint64_t Member::interrupts() {
  std::uint64_t count = 0;
  return ::read(eventfd_.get(), &count, sizeof count) == sizeof count ? count : 0;
}

void Member::send_store(unsigned /*group*/, std::uint64_t /*iova*/, std::uint64_t /*word*/) {
  check(false, "memory that cannot be taken away is not written by messages");
}

void Member::doom() {
  check(false, "a well-behaved member is not dropped");
}

Members::Members(Device& device) : device_(device), members_{Member(device, 0), Member(device, 1)} {
  Member& owner = members_[0];
  check(owner.command(GBA_CMD_ALLOC) == GBA_CMD_OK, "there is a free group");
  const auto result = owner.read(GBA_REG_CMD_RESULT);
  group_ = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, result));
  const auto key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, result));
  const auto base = GBA_GROUP_BASE(group_);
  owner.write(base + GBA_GROUP_MEMBER_COUNT, kMembers, 4);
  owner.write(base + GBA_GROUP_MEMBER_MASK, (std::uint64_t{1} << kMembers) - 1);
  owner.write(base + GBA_GROUP_CONTROL, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  for (unsigned member = 0; member < kMembers; ++member) {
    members_[member].join(group_, key, member);
  }
}

void Members::do_barrier() {
  ++sequence_;
  for (unsigned member = 0; member < kMembers; ++member) {
    check(members_[member].flag(group_) == sequence_ - 1, "no member is released before all have arrived");
    members_[member].ring(group_, member, sequence_);
    device_.settle();
  }
  for (Member& member : members_) {
    check(member.flag(group_) == sequence_, "a barrier of others goes on");
    check(member.interrupts() == 1, "each member is woken once");
    check(member.read(GBA_REG_FAULT) == 0, "others do not cause faults");
  }
}

void Members::check_groups_are_free() {
  auto& engine = device_.engine();
  engine.write(engine.privileged_port(), GBA_REG_GROUP_LIMIT, 8, GBA_MAX_GROUPS, device_.now());
  unsigned free = 0;
  while (members_[0].command(GBA_CMD_ALLOC) == GBA_CMD_OK) {
    ++free;
  }
  check(free == GBA_MAX_GROUPS - 1, "groups of clients that are gone are free again");
}

}  // namespace fuzz
