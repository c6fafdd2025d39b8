// SPDX-License-Identifier: Apache-2.0
// libgba through its public header, over the kernel's VFIO. When a check begins, no function is open.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
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

bool has_open(const std::string& path) {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return std::any_of(begin(descriptors), end(descriptors), [&](const auto& entry) {
    std::error_code closed;  // the iterator's own descriptor is closed by now
    return std::filesystem::read_symlink(entry, closed) == path;
  });
}

/// Compares libgba's backend with the nodes that this process has open in the kernel.
void require_open(const std::string& backend) {
  const std::pair<const char*, const char*> nodes[] = {{"/dev/iommu", "vfio-cdev"}, {"/dev/vfio/vfio", "vfio-group"}};
  for (const auto& [node, way] : nodes) {
    require(has_open(node) == (backend == way),
            "the backend is " + backend + ", and " + node + " is" + (has_open(node) ? "" : " not") + " open");
  }
}

void check_open(const PciFunction& function) {
  const auto device = open(function.address(), GBA_FLAGS_DMA);
  const auto info = info_of(device);
  std::printf("%s%s\n", vm::kBackend, info.backend);
  require_open(info.backend);
  require(info.path == function.address(), "the path is " + std::string(info.path));
  require_equal(info.flags, GBA_FLAGS_DMA, "the place of the flags");
  require_equal(info.is_process, 1, "is_process");
  // The same device opened again, by another name.
  const auto again = open("/dev/vfio/" + function.iommu_group());
  require_equal(info_of(again).port, info.port, "the port of the IOMMU group's device");
}

/// The function's nodes, one or both kinds of the kernel, and the backend by which libgba opens each.
std::vector<std::pair<std::string, std::string>> nodes_of(const PciFunction& function) {
  std::vector<std::pair<std::string, std::string>> nodes{{"/dev/vfio/" + function.iommu_group(), "vfio-group"}};
  if (const auto node = function.vfio_device(); !node.empty()) {
    nodes.emplace_back(node, "vfio-cdev");
  }
  return nodes;
}

void check_nodes(const PciFunction& function) {
  for (const auto& [node, backend] : nodes_of(function)) {
    const auto device = open(node, GBA_FLAGS_DMA);
    require(info_of(device).backend == backend, node + " is opened by " + info_of(device).backend);
    require_open(backend);
    run_lone_barriers(device, 3);
  }
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

/// Each release wakes a sleeping member by an interrupt.
void run_sleeping_barriers(const Device& device, const PciFunction& function, unsigned rounds) {
  const auto handle = make_group(device, 1);
  auto member = join(device, handle, 0);
  for (unsigned round = 1; round <= rounds; ++round) {
    const auto before = function.interrupts();
    int result = -EAGAIN;  // the first sleep also arrives
    while (result == -EAGAIN) {
      result = ::gba_group_sleep(member.get(), round, kWaitLimit);
    }
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
  require_equal(missing[0], 2, "the mask of missing members");
  end_group(device, handle, std::move(member));
}

/// By whichever node one process has opened the function, another process cannot open it by any node.
void check_busy(const PciFunction& function) {
  const auto nodes = nodes_of(function);
  for (const auto& [node, backend] : nodes) {
    const OtherProcess other([&](const Channel& channel) {
      channel.await();
      for (const auto& [other_node, other_backend] : nodes) {
        expect_open(other_node, -EBUSY);
      }
      expect_open(function.address(), -EBUSY);
    });
    const auto device = open(node);
    other.channel().signal();
    other.finish();
    run_lone_barriers(device, 1);  // the attempts have not disturbed it
  }
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
    for (const auto& function : functions) {
      function.bind("vfio-pci");
    }
    require(functions[0].iommu_group() != functions[1].iommu_group(), "the functions share an IOMMU group");
    check_open(functions[0]);
  });
  checks.run("libgba_nodes", [&] { check_nodes(functions[0]); });
  checks.run("libgba_dma_barriers", [&] { check_dma_barriers(functions[0]); });
  checks.run("libgba_bar_barriers", [&] { check_bar_barriers(functions[0]); });
  checks.run("libgba_sleep", [&] {
    for (const auto& function : functions) {
      run_sleeping_barriers(open(function.address()), function, kSleeps);
    }
  });
  checks.run("libgba_timeout", [&] { check_timeout(functions[0]); });
  checks.run("libgba_busy", [&] { check_busy(functions[0]); });
  checks.run("libgba_reopen", [&] { check_reopen(functions[0]); });
}

}  // namespace guest
