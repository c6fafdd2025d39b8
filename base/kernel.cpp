// SPDX-License-Identifier: Apache-2.0
#include "base/kernel.hpp"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <memory>

#include "base/fd.hpp"

namespace base {
namespace {

decltype(Machine::hardware) hardware_address() {
  decltype(Machine::hardware) address{};
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    return address;
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, ::freeifaddrs);
  int lowest = INT_MAX;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_PACKET || (one->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const auto& link = reinterpret_cast<const sockaddr_ll&>(*one->ifa_addr);
    if (link.sll_halen != 0 && link.sll_ifindex < lowest) {
      lowest = link.sll_ifindex;
      address = {};
      std::copy_n(std::begin(link.sll_addr), std::min<std::size_t>(link.sll_halen, address.size()), address.begin());
    }
  }
  return address;
}

}  // namespace

std::array<char, 40> boot_id() {
  std::array<char, 40> id{};
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (file && ::read(file.get(), id.data(), id.size() - 1) < 0) {
    id = {};
  }
  return id;
}

std::uint64_t network_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

Machine this_machine() {
  Machine machine{.boot = boot_id(), .hardware = hardware_address(), .host = {}};
  ::gethostname(machine.host.data(), machine.host.size() - 1);
  return machine;
}

}  // namespace base
