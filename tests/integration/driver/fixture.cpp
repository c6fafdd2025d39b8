// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/driver/fixture.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/support/text.hpp"

namespace driver_test {

std::set<std::string> functions_of(const std::string& header) {
  std::ifstream file(std::string(GBA_HEADERS "/") + header);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> names;
  for (const auto& call : test_support::all_matches(text, "GBA_API [a-z0-9_* ]*?(gba_[a-z_]+)\\(")) {
    names.insert(call[1]);
  }
  return names;
}

DevicePointer DeviceTest::open() {
  gba_device* device = nullptr;
  const int error = gba_open(path().c_str(), &device);
  EXPECT_EQ(error, 0) << gba_error_text();
  return DevicePointer(device);
}

gba_group_handle DeviceTest::alloc(gba_device* device, std::uint32_t members, std::uint64_t sequence) {
  gba_group_handle handle{};
  EXPECT_EQ(gba_group_alloc(device, members, sequence, &handle), 0) << gba_error_text();
  return handle;
}

GroupPointer DeviceTest::join(gba_device* device, const gba_group_handle& handle, std::uint32_t member) {
  gba_group* group = nullptr;
  EXPECT_EQ(gba_group_join(device, &handle, member, &group), 0) << gba_error_text();
  return GroupPointer(group);
}

std::string DeviceTest::shared_words(std::uint32_t members) {
  std::string name = device_.folder().file("words");
  const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(::ftruncate(fd, off_t{8} * members), 0);
  ::close(fd);
  return name;
}

Process& DeviceTest::add_member(const gba_group_handle& handle, std::uint32_t member, const Run& run) {
  members_.push_back(std::make_unique<Process>(std::vector<std::string>{
      test_support::test_program("driver_member"), path(), std::to_string(handle.group), std::to_string(handle.key),
      std::to_string(handle.member_count), std::to_string(handle.sequence), std::to_string(member),
      std::to_string(handle.sequence + 1), std::to_string(handle.sequence + run.rounds),
      shared_words(handle.member_count), std::to_string(run.wait_ms), std::to_string(run.hold_at)}));
  return *members_.back();
}

}  // namespace driver_test
