// SPDX-License-Identifier: Apache-2.0
#include "driver/registers.hpp"

namespace gba {

Result<Registers> Registers::open(Backend& backend, std::uint32_t region, std::uint64_t needed) {
  const auto info = backend.region_info(region);
  if (!info) return tl::make_unexpected(info.error());
  if (info->size < needed) {
    return fail(std::errc::no_such_device, "gba: " + backend.path() + " is not a GBA: its region " +
                                               std::to_string(region) + " has " + std::to_string(info->size) +
                                               " bytes, not " + std::to_string(needed));
  }
  Registers registers(backend, region, info->size);
  if (info->mappable) {
    auto mapping = BarMapping::make(backend, region);
    if (!mapping) return tl::make_unexpected(mapping.error());
    registers.mapping_ = *std::move(mapping);
  }
  return registers;
}

Result<void> Registers::check(std::uint64_t offset, std::size_t size) const {
  if (backend_->lost()) {
    return tl::make_unexpected(backend_->loss_error());
  }
  if (offset % size != 0 || offset > size_ || size_ - offset < size) {
    return fail(std::errc::invalid_argument, "gba: no register of " + std::to_string(size) + " bytes at " +
                                                 std::to_string(offset) + " in region " + std::to_string(region_));
  }
  return {};
}

}  // namespace gba
