// SPDX-License-Identifier: Apache-2.0
// The program of the guest: uses the device that the hypervisor passes through, from user space, and prints the results
// on the console for the host.
#include <cstdio>
#include <exception>

#include "tests/vm/console.hpp"
#include "tests/vm/guest/checks.hpp"

namespace guest {

void Checks::run(const std::string& name, const std::function<void()>& body) {
  try {
    body();
    std::printf("%s%s\n", vm::kPass, name.c_str());
  } catch (const std::exception& error) {
    all_passed_ = false;
    std::printf("%s%s: %s\n", vm::kFail, name.c_str(), error.what());
  }
}

void invite_host(const std::string& name, const Group& group) {
  std::printf("%s%s %u %u\n", vm::kGroup, name.c_str(), group.id, group.key);
}

void ask_to_unplug() {
  std::printf("%s\n", vm::kUnplug);
}

}  // namespace guest

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  guest::Checks checks;
  try {
    guest::check_through_sysfs(checks);
    guest::check_through_vfio(checks);
    guest::check_through_libgba(checks);
    guest::check_two_functions(checks);
    guest::check_ordinary_user(checks);
    guest::check_unplugging(checks);
  } catch (const std::exception& error) {
    std::printf("the checks ended early: %s\n", error.what());
    return 1;
  }
  return checks.all_passed() ? 0 : 1;
}
