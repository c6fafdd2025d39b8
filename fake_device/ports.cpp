// SPDX-License-Identifier: Apache-2.0
#include "fake_device/ports.hpp"

namespace fake_device {
namespace {

std::uint64_t fault_info(const Fault& fault) {
  return GBA_FIELD_PUT(GBA_FAULT_INFO_KIND, fault.kind) | GBA_FIELD_PUT(GBA_FAULT_INFO_GROUP, fault.group) |
         GBA_FIELD_PUT(GBA_FAULT_INFO_MEMBER, fault.member) | GBA_FIELD_PUT(GBA_FAULT_INFO_VALUE, fault.value);
}

}  // namespace

static_assert(GBA_REG_COUNTER_ARRIVALS + 8 * kCounters == GBA_REG_COUNTERS_END, "every counter has its register");

bool FaultRegisters::set(const Fault& fault) {
  if (bits_ == 0) {  // uapi rule 3: the first latches
    info_ = fault_info(fault);
    address_ = fault.address;
  }
  const bool fresh = (bits_ & GBA_FAULT_BIT(fault.kind)) == 0;
  bits_ |= GBA_FAULT_BIT(fault.kind);
  return fresh;
}

void FaultRegisters::clear(std::uint64_t bits) {
  bits_ &= ~bits;
  if (bits_ == 0) {
    info_ = 0;
    address_ = 0;
  }
}

Ports::Ports(const Dimensions& dimensions, Effects& effects)
    : effects_(effects), error_vector_(dimensions.error_vector()), ports_(dimensions.ports + 1) {
  for (auto& port : ports_) {
    port.member_of.assign(dimensions.groups, kNoMember);
    port.wrong_keys.assign(dimensions.groups, 0);
  }
  ports_.back().privileged = true;
}

void Ports::dma_fault(unsigned port, unsigned group, std::uint64_t address) {
  count(Counter::kDmaFaults);
  const auto member = static_cast<unsigned>(ports_[port].member_of[group]);
  fault(port, {.kind = GBA_FAULT_DMA, .group = group, .member = member, .address = address});
}

void Ports::raise(unsigned port, unsigned vector) {
  count(Counter::kInterrupts);
  effects_.raise(port, vector);
}

void Ports::fault(unsigned port, const Fault& fault) {
  if (ports_[port].faults.set(fault)) {
    raise(port, error_vector_);
  }
}

void Ports::reject(unsigned port, const Fault& rejected) {
  count(Counter::kRejected);
  fault(port, rejected);
}

void Ports::join(unsigned port, unsigned group, unsigned member) {
  ports_[port].member_of[group] = static_cast<int>(member);
  effects_.joined(port, group);
}

void Ports::leave(unsigned port, unsigned group) {
  ports_[port].member_of[group] = kNoMember;
  effects_.left(port, group);
}

}  // namespace fake_device
