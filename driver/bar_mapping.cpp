// SPDX-License-Identifier: Apache-2.0
#include "driver/bar_mapping.hpp"

namespace gba {

Result<BarMapping> BarMapping::make(Backend& backend, std::uint32_t region, std::size_t needed) {
  auto mapping = backend.map(region);
  if (!mapping) {
    return mapping.error();
  }
  if (mapping->size() < needed) {
    return fail(std::errc::protocol_error, fmt::format("gba: cannot open {}: its region {} has {} bytes, not {}",
                                                       backend.path(), region, mapping->size(), needed));
  }
  MemoryEntry entry(backend, mapping->bytes(), MemoryEntry::Kind::kDevice);
  if (!entry) {
    return fail(std::errc::too_many_files_open,
                fmt::format("gba: cannot open {}: more than {} device regions and flag pages are mapped",
                            backend.path(), MemoryEntry::kMost));
  }
  return BarMapping(*std::move(mapping), std::move(entry));
}

}  // namespace gba
