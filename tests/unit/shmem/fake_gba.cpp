// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/fake_gba.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "gba/gba.h"

struct gba_device {};

struct gba_group {
  std::uint32_t group, member;
  std::atomic<std::uint64_t> flag{0};
  std::atomic<bool> lost{false};
};

namespace {

constexpr std::uint64_t kError = std::uint64_t{1} << 63;
constexpr std::uint64_t kSequence = (std::uint64_t{1} << 56) - 1;

struct Group {
  std::uint32_t member_count = 0;
  std::uint64_t released = 0;
  bool enabled = false, error = false;
  std::map<std::uint32_t, gba_group*> members;
  std::vector<bool> arrived;
};

struct Switch {
  std::mutex lock;
  std::map<std::uint32_t, Group> groups;
  int limit = 32;
  bool lost = false;
  std::uint32_t member_loss = 0, device_loss = 0;
  std::int64_t refused = -1;
  std::uint64_t releases = 0;
  std::minstd_rand random{1};

  bool chance(std::uint32_t one_in) { return one_in != 0 && random() % one_in == 0; }
  /// The member's way to the switch is gone. The switch notices every other time only.
  void lose(Group& group, gba_group* handle) {
    handle->lost = true;
    if (random() % 2 == 0) {
      group.members.erase(handle->member);
      fail(group);
    }
  }
  void fail(Group& group) {
    group.error = true;
    for (auto& [member, handle] : group.members) {
      if (handle->lost) {
        continue;
      }
      handle->flag.store(kError | group.released, std::memory_order_release);
    }
  }
};

Switch& the_switch() {
  static Switch instance;
  return instance;
}
thread_local const char* error_text = "";

int failed(int error, const char* text) {
  error_text = text;
  return error;
}

/// Only a first arrival may go wrong: repeats must not be what brings a stuck member on.
void ring(gba_group* handle, std::uint64_t sequence, bool first) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  const auto found = s.groups.find(handle->group);
  s.lost = s.lost || (first && s.chance(s.device_loss));
  if (s.lost || handle->lost || found == s.groups.end()) {
    return;
  }
  Group& group = found->second;
  if (first && s.chance(s.member_loss)) {
    s.lose(group, handle);
    return;
  }
  if (group.error || sequence != group.released + 1) {
    handle->flag.store((group.error ? kError : 0) | group.released, std::memory_order_release);
    return;
  }
  group.arrived[handle->member] = true;
  if (std::all_of(group.arrived.begin(), group.arrived.end(), [](bool arrived) { return arrived; })) {
    ++group.released;
    ++s.releases;
    group.arrived.assign(group.arrived.size(), false);
    std::vector<gba_group*> missed;
    for (auto& [member, other] : group.members) {
      if (!other->lost && s.chance(s.member_loss)) {
        missed.push_back(other);  // it was counted, but never hears of it
      } else if (!other->lost) {
        other->flag.store(group.released, std::memory_order_release);
      }
    }
    for (gba_group* other : missed) {
      s.lose(group, other);
    }
  }
}

}  // namespace

namespace fake_gba {

void power_on(int groups) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  s.groups.clear();
  s.limit = groups;
  s.lost = false;
  s.member_loss = s.device_loss = 0;
  s.refused = -1;
  s.releases = 0;
}
void lose_members(std::uint32_t one_in) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().member_loss = one_in;
}
void lose_device() {
  const std::lock_guard guard(the_switch().lock);
  the_switch().lost = true;
}
void lose_device_at_random(std::uint32_t one_in) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().device_loss = one_in;
}
void refuse_member(std::uint32_t member) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().refused = member;
}
int groups_in_use() {
  const std::lock_guard guard(the_switch().lock);
  return static_cast<int>(the_switch().groups.size());
}
std::uint64_t releases() {
  const std::lock_guard guard(the_switch().lock);
  return the_switch().releases;
}

}  // namespace fake_gba

extern "C" {

const char* gba_error_text() {
  return error_text;
}

int gba_open(const char* /*path*/, gba_device** out) {
  *out = std::make_unique<gba_device>().release();
  return 0;
}
void gba_close(gba_device* device) {
  const std::unique_ptr<gba_device> owner(device);
}

int gba_device_get_info(gba_device* /*device*/, gba_device_info* info) {
  *info = {};
  return 0;
}

int gba_group_alloc(gba_device* /*device*/, std::uint32_t count, std::uint64_t sequence, gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  for (std::uint32_t g = 0; g < static_cast<std::uint32_t>(s.limit) && !s.lost; ++g) {
    if (!s.groups.contains(g)) {
      s.groups[g] = Group{count, sequence, false, false, {}, std::vector<bool>(count)};
      *handle = {g, 7, count, 0, sequence};
      return 0;
    }
  }
  return s.lost ? failed(-ENODEV, "lost") : failed(-ENOSPC, "all groups are taken");
}

int gba_group_enable(gba_device* /*device*/, const gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  s.groups[handle->group].enabled = true;
  return 0;
}

int gba_group_disable(gba_device* /*device*/, const gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  s.groups[handle->group].enabled = false;
  return 0;
}

int gba_group_free(gba_device* /*device*/, const gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  s.groups.erase(handle->group);
  return 0;
}

int gba_group_join(gba_device* /*device*/, const gba_group_handle* handle, std::uint32_t member, gba_group** out) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  *out = nullptr;
  if (s.lost || s.refused == member || !s.groups.contains(handle->group)) {
    return failed(-ENODEV, "lost");
  }
  auto joined = std::make_unique<gba_group>();
  joined->group = handle->group;
  joined->member = member;
  *out = joined.release();
  s.groups[handle->group].members[member] = *out;
  return 0;
}

int gba_group_leave(gba_group* handle) {
  const std::unique_ptr<gba_group> owner(handle);
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  if (const auto found = s.groups.find(handle->group); found != s.groups.end()) {
    found->second.members.erase(handle->member);
    s.fail(found->second);
  }
  return 0;
}

void gba_group_arrive(gba_group* handle, std::uint64_t sequence) {
  ring(handle, sequence, true);
}

int gba_group_test(gba_group* handle, std::uint64_t sequence) {
  const std::uint64_t flag = handle->flag.load(std::memory_order_acquire);
  if ((flag & kSequence) == sequence) {
    return 0;
  }
  return (flag & kError) != 0 ? failed(-EPIPE, "a member left") : -EAGAIN;
}

int gba_group_sleep(gba_group* handle, std::uint64_t sequence, std::uint64_t /*max_ns*/) {
  ring(handle, sequence, false);
  std::this_thread::sleep_for(std::chrono::microseconds{20});
  const int status = gba_group_test(handle, sequence);
  const std::lock_guard guard(the_switch().lock);
  const bool lost = the_switch().lost || handle->lost;
  return status == -EAGAIN && lost ? failed(-ENODEV, "the device is lost") : status;
}
}
