// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/guest/libgba.hpp"

#include <stdexcept>
#include <utility>

namespace guest {

void require_gba(int result, int wanted, const std::string& what) {
  if (result == wanted) {
    return;
  }
  throw std::runtime_error(what + " gives " + std::to_string(result) + ", not " + std::to_string(wanted) + ": " +
                           ::gba_error_text());
}

void require_in(const std::string& text, const std::string& wanted) {
  require(text.find(wanted) != std::string::npos, "the text \"" + text + "\" does not say \"" + wanted + "\"");
}

Device open(const std::string& path, std::uint32_t flags) {
  const gba_open_options options{.size = sizeof options, .flags = flags};
  gba_device* device = nullptr;
  require_gba(::gba_open_with(path.c_str(), &options, &device), 0, "gba_open_with " + path);
  return Device(device);
}

void expect_open(const std::string& path, int wanted, std::uint32_t flags) {
  const gba_open_options options{.size = sizeof options, .flags = flags};
  gba_device* device = nullptr;
  const int result = ::gba_open_with(path.c_str(), &options, &device);
  const Device owner(device);
  require_gba(result, wanted, "gba_open_with " + path);
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
  require_gba(::gba_group_wait(member.get(), round, kWaitLimit), 0, "gba_group_wait " + std::to_string(round));
}

void run_barriers(const Member& member, unsigned rounds) {
  for (unsigned round = 1; round <= rounds; ++round) {
    run_barrier(member, round);
  }
}

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

}  // namespace guest
