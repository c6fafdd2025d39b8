// SPDX-License-Identifier: Apache-2.0
// A member of a barrier group in a process of its own: opens the device, joins, and runs barriers.
//
//   driver_member DEVICE GROUP KEY COUNT SEQUENCE MEMBER FIRST LAST SHARED [WAIT_MS [HOLD_AT]]
//
// SHARED is a file with one 8-byte word per member, in which each member records its progress: after a barrier no
// member may be behind. At HOLD_AT the last member prints "holding" and does not arrive.
//
// Exits with 0; with 3 and "failed" if a call fails; with 4 and "wrong" if it is released early.
//
//   driver_member many DEVICE MEMBERS BARRIERS: many_members.cpp
#include "tests/integration/driver/driver_member.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "gba/gba.h"

namespace {

constexpr std::uint64_t kLongestWaitMs = 60'000;

struct Arguments {
  const char* device;
  gba_group_handle handle;
  std::uint32_t member;
  std::uint64_t first;
  std::uint64_t last;
  const char* shared;
  std::uint64_t wait_ms;  // in the round in which the last member holds, and later
  std::uint64_t hold_at;
};

std::uint64_t number(const char* text) {
  return std::strtoull(text, nullptr, 10);
}

Arguments parse(std::span<char*> words) {
  Arguments arguments{};
  arguments.device = words[1];
  arguments.handle = {.group = static_cast<std::uint32_t>(number(words[2])),
                      .key = static_cast<std::uint32_t>(number(words[3])),
                      .member_count = static_cast<std::uint32_t>(number(words[4])),
                      .reserved = 0,
                      .sequence = number(words[5])};
  arguments.member = static_cast<std::uint32_t>(number(words[6]));
  arguments.first = number(words[7]);
  arguments.last = number(words[8]);
  arguments.shared = words[9];
  arguments.wait_ms = words.size() > 10 ? number(words[10]) : kLongestWaitMs;
  arguments.hold_at = words.size() > 11 ? number(words[11]) : 0;
  return arguments;
}

std::span<std::uint64_t> map_words(const char* path, std::size_t count) {
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  void* data = ::mmap(nullptr, count * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (data == MAP_FAILED) {
    std::abort();
  }
  return {static_cast<std::uint64_t*>(data), count};
}

int failed(const char* what, int error) {
  std::printf("failed %s %d %s\n", what, -error, gba_error_text());
  std::fflush(stdout);
  return 3;
}

void hold() {
  std::printf("holding\n");
  std::fflush(stdout);
  for (;;) {
    ::pause();
  }
}

bool any_member_behind(std::span<std::uint64_t> words, std::uint64_t sequence) {
  for (auto& word : words) {
    // Relaxed: the barrier itself must have ordered the others' stores before this.
    if (std::atomic_ref(word).load(std::memory_order_relaxed) < sequence) {
      return true;
    }
  }
  return false;
}

int run_barriers(const Arguments& arguments, gba_group* group) {
  const auto words = map_words(arguments.shared, arguments.handle.member_count);
  for (std::uint64_t k = arguments.first; k <= arguments.last; ++k) {
    if (k == arguments.hold_at && arguments.member + 1 == arguments.handle.member_count) {
      hold();
    }
    std::atomic_ref(words[arguments.member]).store(k, std::memory_order_relaxed);
    gba_group_arrive(group, k);
    const std::uint64_t wait_ms = k < arguments.hold_at ? kLongestWaitMs : arguments.wait_ms;
    const int error = gba_group_wait(group, k, wait_ms * 1'000'000);
    if (error != 0) {
      return failed("wait", error);
    }
    if (any_member_behind(words, k)) {
      std::printf("wrong: released from %llu before all arrived\n", static_cast<unsigned long long>(k));
      return 4;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  if (words.size() > 1 && std::string_view(words[1]) == "many") {
    return run_many_members(words.subspan(1));
  }
  if (words.size() < 10) {
    return 2;
  }
  const Arguments arguments = parse(words);
  gba_device* device = nullptr;
  int error = gba_open(arguments.device, &device);
  if (error != 0) {
    return failed("open", error);
  }
  gba_group* group = nullptr;
  error = gba_group_join(device, &arguments.handle, arguments.member, &group);
  if (error != 0) {
    return failed("join", error);
  }
  std::printf("joined\n");
  std::fflush(stdout);
  const int code = run_barriers(arguments, group);
  if (code != 0) {
    return code;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf("done switches %ld\n", usage.ru_nvcsw);
  std::fflush(stdout);
  ::pause();  // leaving an enabled group would be an error for the members that still wait
  return 0;
}
