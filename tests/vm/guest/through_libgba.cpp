// SPDX-License-Identifier: Apache-2.0
// libgba by its public header, on the kernel's VFIO: no function has another opener when a check begins.
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "gba/gba.h"
#include "tests/vm/console.hpp"
#include "tests/vm/guest/checks.hpp"
#include "tests/vm/guest/libgba.hpp"
#include "tests/vm/guest/other_process.hpp"
#include "tests/vm/guest/pci_function.hpp"
#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

constexpr unsigned kSleeps = 20;

void check_open(const PciFunction& function) {
  const auto device = open(function.address(), GBA_FLAGS_DMA);
  const auto info = info_of(device);
  const std::string wanted = std::filesystem::exists("/dev/vfio/devices") ? "vfio-cdev" : "vfio-group";
  require(info.backend == wanted, "the backend is " + std::string(info.backend) + ", not " + wanted);
  require(info.path == function.address(), "the path is " + std::string(info.path));
  require_equal(info.flags, GBA_FLAGS_DMA, "the place of the flags");
  require_equal(info.is_process, 1, "is_process");
  // The same device by another name, once more.
  const auto again = open("/dev/vfio/" + function.iommu_group());
  require_equal(info_of(again).port, info.port, "the port of the IOMMU group's device");
}

void check_dma_barriers(const PciFunction& function) {
  run_lone_barriers(open(function.address(), GBA_FLAGS_DMA), vm::kRounds);
}

void check_bar_barriers(const PciFunction& function) {
  ::setenv("GBA_FLAGS", "bar", 1);
  const auto device = open(function.address());
  ::unsetenv("GBA_FLAGS");
  require_equal(info_of(device).flags, GBA_FLAGS_BAR, "the place of the flags");
  run_lone_barriers(device, vm::kRounds);
}

/// A member that sleeps is told of its release by an interrupt, each time.
void run_sleeping_barriers(const Device& device, const PciFunction& function, unsigned rounds) {
  const auto handle = make_group(device, 1);
  auto member = join(device, handle, 0);
  for (unsigned round = 1; round <= rounds; ++round) {
    const auto before = function.interrupts();
    int result = -EAGAIN;  // the first sleep arrives, too
    while (result == -EAGAIN) result = ::gba_group_sleep(member.get(), round, kPatience);
    require_gba(result, 0, "gba_group_sleep " + std::to_string(round));
    wait_for([&] { return function.interrupts() > before; }, "the interrupt of round " + std::to_string(round));
  }
  end_group(device, handle, std::move(member));
}

void check_timeout(const PciFunction& function) {
  const auto device = open(function.address());
  const auto handle = make_group(device, 2);
  auto member = join(device, handle, 0);
  ::gba_group_arrive(member.get(), 1);
  require_gba(::gba_group_wait(member.get(), 1, 20 * kMillisecond), -ETIMEDOUT, "gba_group_wait");
  require_in(::gba_error_text(), "member 1 did not arrive");
  std::uint64_t missing[GBA_GROUP_MASK_WORDS] = {};
  require_gba(::gba_group_missing(member.get(), missing), 0, "gba_group_missing");
  require_equal(missing[0], 2, "the mask of who is missing");
  end_group(device, handle, std::move(member));
}

void check_busy(const PciFunction& function) {
  const OtherProcess other([&](const Channel& channel) {
    channel.await();
    expect_open(function.address(), -EBUSY);
  });
  const auto device = open(function.address());
  other.channel().signal();
  other.finish();
  run_lone_barriers(device, 1);  // it has not been disturbed
}

void check_reopen(const PciFunction& function) {
  for (const auto flags : {GBA_FLAGS_DMA, GBA_FLAGS_BAR, GBA_FLAGS_DMA}) {
    run_sleeping_barriers(open(function.address(), flags), function, 3);
  }
}

}  // namespace

void check_through_libgba(Checks& checks) {
  const auto functions = PciFunction::find_all();
  checks.run("libgba_open", [&] {
    require_equal(functions.size(), 2, "the number of functions");
    for (const auto& function : functions) function.bind("vfio-pci");
    require(functions[0].iommu_group() != functions[1].iommu_group(), "the functions share an IOMMU group");
    check_open(functions[0]);
  });
  checks.run("libgba_dma_barriers", [&] { check_dma_barriers(functions[0]); });
  checks.run("libgba_bar_barriers", [&] { check_bar_barriers(functions[0]); });
  checks.run("libgba_sleep", [&] {
    for (const auto& function : functions) run_sleeping_barriers(open(function.address()), function, kSleeps);
  });
  checks.run("libgba_timeout", [&] { check_timeout(functions[0]); });
  checks.run("libgba_busy", [&] { check_busy(functions[0]); });
  checks.run("libgba_reopen", [&] { check_reopen(functions[0]); });
}

}  // namespace guest
