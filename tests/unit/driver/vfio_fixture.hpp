// SPDX-License-Identifier: Apache-2.0
// The two ways to a device behind the kernel's VFIO, on a fake kernel.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>
#include <memory>
#include <ostream>
#include <string>

#include "driver/backend_vfio.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/driver/fake_kernel.hpp"

namespace gba::test {

struct Way {
  std::string name;
  VfioNodes nodes;
  VfioNodes second;  // a device of the same IOMMU group
  Result<std::unique_ptr<Backend>> (*open)(SystemCalls&, const PciSysfs&, const VfioNodes&);
  Result<std::unique_ptr<Backend>> (*open_in)(SystemCalls&, const PciSysfs&, const VfioNodes&, VfioContexts&);
  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

inline const Way kGroupWay{.name = "vfio_group",
                           .nodes = kGroupNodes,
                           .second = kSecondGroupNodes,
                           .open = VfioGroupBackend::open,
                           .open_in = VfioGroupBackend::open};
inline const Way kCdevWay{.name = "vfio_cdev",
                          .nodes = kCdevNodes,
                          .second = kSecondCdevNodes,
                          .open = VfioCdevBackend::open,
                          .open_in = VfioCdevBackend::open};

/// An empty sysfs: the machine has no other device.
inline PciSysfs no_sysfs() {
  return PciSysfs("/no/where");
}

/// Calls each operation of a backend once. Returns the first error, or none.
inline Error do_everything(const Way& way, SystemCalls& system) {
  const auto opened = way.open(system, no_sysfs(), way.nodes);
  if (!opened) {
    return opened.error();
  }
  Backend& backend = **opened;
  std::array<std::byte, 4> word{};
  if (auto r = backend.region_info(GBA_REGION_CONTROL); !r) {
    return r.error();
  }
  if (auto r = backend.read(GBA_REGION_CONFIG, 0, word); !r) {
    return r.error();
  }
  if (auto r = backend.write(GBA_REGION_CONFIG, 4, word); !r) {
    return r.error();
  }
  const auto mapping = backend.map(GBA_REGION_DOORBELLS);
  if (!mapping) {
    return mapping.error();
  }
  const base::UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (auto r = backend.arm_irq(GBA_IRQ_MSIX, 3, event.get()); !r) {
    return r.error();
  }
  if (auto r = backend.arm_irq(GBA_IRQ_MSIX, 5, event.get()); !r) {
    return r.error();
  }
  if (auto r = backend.disarm_irq(GBA_IRQ_MSIX, 3); !r) {
    return r.error();
  }
  if (auto r = backend.dma_limits(); !r) {
    return r.error();
  }
  if (auto r = backend.dma_map({.fd = -1, .memory = mapping->bytes().first(4096)}, 0x100000000); !r) {
    return r.error();
  }
  if (auto r = backend.dma_unmap(0x100000000, 4096); !r) {
    return r.error();
  }
  if (auto r = backend.reset(); !r) {
    return r.error();
  }
  return {};
}

}  // namespace gba::test
