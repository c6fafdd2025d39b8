// SPDX-License-Identifier: Apache-2.0
// libgba without privileges. When a check begins, no function is open.
#include <grp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "tests/vm/guest/checks.hpp"
#include "tests/vm/guest/libgba.hpp"
#include "tests/vm/guest/other_process.hpp"
#include "tests/vm/guest/pci_function.hpp"
#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

constexpr uid_t kUser = 1000;
constexpr unsigned kFewRounds = 3;

/// Gives the nodes to the user's group, as udev/70-gba.rules does.
void give_nodes(const std::vector<PciFunction>& functions) {
  std::vector<std::string> nodes{"/dev/vfio/vfio", "/dev/iommu"};
  for (const auto& function : functions) {
    nodes.push_back("/dev/vfio/" + function.iommu_group());
    nodes.push_back(function.vfio_device());
  }
  for (const auto& node : nodes) {
    if (std::filesystem::exists(node)) {
      require_call(::chown(node.c_str(), kUser, kUser), "chown " + node);
    }
  }
}

/// Becomes an ordinary user that may lock `memory` bytes.
void become_user(rlim_t memory) {
  const rlimit limit{.rlim_cur = memory, .rlim_max = memory};
  require_call(::setrlimit(RLIMIT_MEMLOCK, &limit), "RLIMIT_MEMLOCK");
  require_call(::setgroups(0, nullptr), "setgroups");
  require_call(::setgid(kUser), "setgid");
  require_call(::setuid(kUser), "setuid");
}

/// The group's container counts pinned memory per process, iommufd per user.
void open_beside_another(const PciFunction& function) {
  if (function.vfio_device().empty()) {
    return run_lone_barriers(open(function.address(), GBA_FLAGS_DMA), kFewRounds);
  }
  expect_open(function.address(), -ENOMEM, GBA_FLAGS_DMA);
  require_in(::gba_error_text(), "what the user's other processes have pinned for devices counts too");
  const auto device = open(function.address());
  require_equal(info_of(device).flags, GBA_FLAGS_BAR, "the place of the flags if no memory can be pinned");
  run_lone_barriers(device, kFewRounds);
}

/// Two processes of a user that may lock one page.
void check_memory_limit(const std::vector<PciFunction>& functions) {
  constexpr rlim_t kPage = 4096;
  give_nodes(functions);
  const OtherProcess first([&](const Channel& channel) {
    become_user(kPage);
    const auto device = open(functions[0].address(), GBA_FLAGS_DMA);
    channel.signal();
    channel.await();
    run_lone_barriers(device, kFewRounds);
  });
  first.channel().await();
  const OtherProcess second([&](const Channel& channel) {
    become_user(kPage);
    open_beside_another(functions[1]);
    channel.signal();
    channel.await();
    run_lone_barriers(open(functions[1].address(), GBA_FLAGS_DMA), kFewRounds);  // the first process has ended
  });
  second.channel().await();
  first.channel().signal();
  first.finish();
  second.channel().signal();
  second.finish();
}

}  // namespace

void check_ordinary_user(Checks& checks) {
  const auto functions = PciFunction::find_all();
  checks.run("libgba_memory_limit", [&] { check_memory_limit(functions); });
}

}  // namespace guest
