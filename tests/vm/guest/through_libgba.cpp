// SPDX-License-Identifier: Apache-2.0
// libgba by its public header, on the kernel's VFIO: no function has another opener when a check begins.
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "gba/gba.h"
#include "tests/vm/console.hpp"
#include "tests/vm/guest/checks.hpp"
#include "tests/vm/guest/other_process.hpp"
#include "tests/vm/guest/pci_function.hpp"
#include "tests/vm/guest/require.hpp"

namespace guest {
namespace {

constexpr std::uint64_t kMillisecond = 1000000;
constexpr std::uint64_t kPatience = 20000 * kMillisecond;
constexpr unsigned kNotifiedRounds = 20;

struct Close {
  void operator()(gba_device* device) const { ::gba_close(device); }
};
using Device = std::unique_ptr<gba_device, Close>;

struct Leave {
  void operator()(gba_group* group) const { ::gba_group_leave(group); }
};
using Member = std::unique_ptr<gba_group, Leave>;

/// `result` of a call into libgba is `wanted`, 0 or a negative errno.
void require_gba(int result, int wanted, const std::string& what) {
  if (result == wanted) return;
  throw std::runtime_error(what + " gives " + std::to_string(result) + ", not " + std::to_string(wanted) + ": " +
                           ::gba_error_text());
}

void require_in(const std::string& text, const std::string& wanted) {
  require(text.find(wanted) != std::string::npos, "the text \"" + text + "\" does not say \"" + wanted + "\"");
}

template <typename Condition>
void wait_for(const Condition& condition, const std::string& what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kPatience);
  while (!condition()) {
    require(std::chrono::steady_clock::now() < end, what + " does not come");
    ::sched_yield();
  }
}

Device open(const std::string& path, std::uint32_t flags = GBA_FLAGS_AUTO) {
  const gba_open_options options{.size = sizeof options, .flags = flags};
  gba_device* device = nullptr;
  require_gba(::gba_open_with(path.c_str(), &options, &device), 0, "gba_open_with " + path);
  return Device(device);
}

gba_device_info info_of(const Device& device) {
  gba_device_info info{};
  require_gba(::gba_device_get_info(device.get(), &info), 0, "gba_device_get_info");
  return info;
}

gba_group_handle make_group(const Device& device, unsigned members) {
  gba_group_handle handle{};
  require_gba(::gba_group_alloc(device.get(), members, 0, &handle), 0, "gba_group_alloc");
  require_gba(::gba_group_enable(device.get(), &handle), 0, "gba_group_enable");
  return handle;
}

Member join(const Device& device, const gba_group_handle& handle, unsigned member) {
  gba_group* group = nullptr;
  require_gba(::gba_group_join(device.get(), &handle, member, &group), 0, "gba_group_join");
  return Member(group);
}

void run_barrier(const Member& member, std::uint64_t round) {
  ::gba_group_arrive(member.get(), round);
  require_gba(::gba_group_wait(member.get(), round, kPatience), 0, "gba_group_wait " + std::to_string(round));
}

void run_barriers(const Member& member, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) run_barrier(member, round);
}

/// In good order: nobody gets an error release.
void end_group(const Device& device, const gba_group_handle& handle, Member member) {
  require_gba(::gba_group_disable(device.get(), &handle), 0, "gba_group_disable");
  require_gba(::gba_group_leave(member.release()), 0, "gba_group_leave");
  require_gba(::gba_group_free(device.get(), &handle), 0, "gba_group_free");
}

void run_lone_barriers(const Device& device, unsigned rounds) {
  const auto handle = make_group(device, 1);
  auto member = join(device, handle, 0);
  run_barriers(member, rounds);
  end_group(device, handle, std::move(member));
}

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

/// What the kernel has counted of the function's MSI-X vectors while they are set up: the sum over all processors.
std::uint64_t interrupts_of(const PciFunction& function) {
  std::uint64_t sum = 0;
  std::ifstream in("/proc/interrupts");
  for (std::string line; std::getline(in, line);) {
    if (line.find("vfio-msix[") == std::string::npos || line.find(function.address()) == std::string::npos) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::uint64_t count = 0; words >> count;) sum += count;
  }
  return sum;
}

/// A member that sleeps is told of its release by an interrupt, each time.
void check_sleep(const PciFunction& function) {
  const auto device = open(function.address());
  const auto handle = make_group(device, 1);
  auto member = join(device, handle, 0);
  for (unsigned round = 1; round <= kNotifiedRounds; ++round) {
    const auto before = interrupts_of(function);
    int result = -EAGAIN;  // the first sleep arrives, too
    while (result == -EAGAIN) result = ::gba_group_sleep(member.get(), round, kPatience);
    require_gba(result, 0, "gba_group_sleep " + std::to_string(round));
    wait_for([&] { return interrupts_of(function) > before; }, "the interrupt of round " + std::to_string(round));
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

void expect_open(const PciFunction& function, int wanted) {
  gba_device* device = nullptr;
  const int result = ::gba_open(function.address().c_str(), &device);
  const Device owner(device);
  require_gba(result, wanted, "gba_open " + function.address());
}

void check_busy(const PciFunction& function) {
  const OtherProcess other([&](const Channel& channel) {
    channel.await();
    expect_open(function, -EBUSY);
  });
  const auto device = open(function.address());
  other.channel().signal();
  other.finish();
  run_lone_barriers(device, 1);  // it has not been disturbed
}

void check_reopen(const PciFunction& function) {
  for (const auto flags : {GBA_FLAGS_DMA, GBA_FLAGS_BAR, GBA_FLAGS_DMA}) {
    run_lone_barriers(open(function.address(), flags), 3);
  }
}

/// Member 1 of a group that the other process hands out, until all have run `rounds` barriers.
Member be_second_member(const Channel& channel, const Device& device, unsigned rounds) {
  const auto handle = channel.receive();
  auto member = join(device, handle, 1);
  channel.signal();
  run_barriers(member, rounds);
  channel.signal();
  return member;
}

/// Hands a group of three to the other process and to the host and runs `rounds` barriers with them.
Member be_first_member(const OtherProcess& other, const gba_group_handle& handle, const char* name,
                       const Device& device, unsigned rounds) {
  auto member = join(device, handle, 0);
  other.channel().send(handle);
  other.channel().await();
  invite_host(name, {.id = handle.group, .key = handle.key});
  run_barriers(member, rounds);
  other.channel().await();
  return member;
}

void check_three_members(const std::vector<PciFunction>& functions) {
  const OtherProcess other([&](const Channel& channel) {
    const auto device = open(functions[1].address());
    const auto member = be_second_member(channel, device, vm::kRounds);
    channel.await();  // the group is to end in good order
  });
  const auto device = open(functions[0].address());
  const auto handle = make_group(device, 3);
  auto member = be_first_member(other, handle, vm::kThreeMembersGroup, device, vm::kRounds);
  require_gba(::gba_group_disable(device.get(), &handle), 0, "gba_group_disable");
  other.channel().signal();
  other.finish();
  require_gba(::gba_group_leave(member.release()), 0, "gba_group_leave");
  require_gba(::gba_group_free(device.get(), &handle), 0, "gba_group_free");
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
    for (const auto& function : functions) check_sleep(function);
  });
  checks.run("libgba_timeout", [&] { check_timeout(functions[0]); });
  checks.run("libgba_busy", [&] { check_busy(functions[0]); });
  checks.run("libgba_reopen", [&] { check_reopen(functions[0]); });
  checks.run("libgba_three_members", [&] { check_three_members(functions); });
}

}  // namespace guest
