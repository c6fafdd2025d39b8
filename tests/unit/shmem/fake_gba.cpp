// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/fake_gba.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gba/gba.h"

/// The connection of one opener to the switch.
struct Opened {
  std::uint64_t epoch;  // that of the switch when it was opened
  bool lost = false;    // guarded by the switch's lock
};

struct gba_device {
  std::shared_ptr<Opened> opened;
};

struct gba_group {
  std::shared_ptr<Opened> opened;
  std::uint32_t group = 0, member = 0;
  std::atomic<std::uint64_t> flag{0};
  fake_gba::Way way = fake_gba::Way::kGood;
  int silent_looks = 0;  // until -ECOMM
  [[nodiscard]] bool is_cut_off() const { return way == fake_gba::Way::kFails || way == fake_gba::Way::kSilent; }
};

namespace {

constexpr std::uint64_t kError = std::uint64_t{1} << 63;
constexpr std::uint64_t kSequence = (std::uint64_t{1} << 56) - 1;

struct Group {
  std::uint32_t key = 0, member_count = 0;
  std::uint64_t released = 0;
  bool enabled = false, error = false;
  std::map<std::uint32_t, gba_group*> members;
  std::vector<bool> arrived;
};

struct Switch {
  std::mutex lock;
  std::map<std::uint32_t, Group> groups;
  int limit = 32;
  std::uint32_t most = 708;  // members of a group
  std::uint64_t epoch = 1;   // increases whenever the switch loses its memory
  std::uint32_t last_key = 0;
  bool lost = false, returns = false;
  std::uint32_t member_loss = 0, device_loss = 0, failing = 0;
  fake_gba::Call restarts_in = fake_gba::Call::kNone;
  std::int64_t refused = -1;
  int ports = 0, most_ports = -1;  // how many are open, and how many may be
  std::uint64_t releases = 0;
  std::atomic<std::uint64_t> arrivals{0};
  std::map<std::thread::id, int> leaves;
  std::optional<fake_gba::Play> play;
  std::optional<std::pair<std::uint64_t, fake_gba::Way>> death;  // in the next release: the members that it reaches
  std::string violation;
  std::vector<std::string> functions, paths;
  int open_error = 0;
  std::minstd_rand random{1};

  bool chance(std::uint32_t one_in) { return one_in != 0 && random() % one_in == 0; }
  void restart() {
    groups.clear();
    lost = false;
    ++epoch;
  }
  void restart_in(fake_gba::Call call) {
    if (restarts_in == call) {
      restarts_in = fake_gba::Call::kNone;
      restart();
    }
  }
  [[nodiscard]] bool reached_by(const Opened& opened) const { return !lost && !opened.lost && opened.epoch == epoch; }
  /// nullptr if no group has that number and key now.
  Group* find(const gba_group_handle& handle) {
    const auto found = groups.find(handle.group);
    return found != groups.end() && found->second.key == handle.key ? &found->second : nullptr;
  }
  /// Breaks the member's connection. The switch notices in about half of the cases.
  void lose(Group& group, gba_group* handle) {
    handle->opened->lost = true;
    if (random() % 2 == 0) {
      group.members.erase(handle->member);
      fail(group);
    }
  }
  void fail(Group& group) {
    group.error = true;
    for (auto& [member, handle] : group.members) {
      if (handle->opened->lost || handle->way != fake_gba::Way::kGood) {
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

int look(gba_group* handle, std::uint64_t sequence) {
  const std::uint64_t flag = handle->flag.load(std::memory_order_acquire);
  if ((flag & kSequence) == sequence) {
    return 0;
  }
  if ((flag & kError) != 0) {
    return failed(-EPIPE, "a member left");
  }
  switch (handle->way) {
    case fake_gba::Way::kGood:
      break;
    case fake_gba::Way::kFails:
      return failed(-ENODEV, "the device is lost");
    case fake_gba::Way::kCoughs:
      handle->way = fake_gba::Way::kGood;
      return failed(-EIO, "the device is not available");
    case fake_gba::Way::kSilent:
      handle->silent_looks -= handle->silent_looks > 0 ? 1 : 0;
      return handle->silent_looks == 0 ? failed(-ECOMM, "the device is silent") : -EAGAIN;
  }
  return -EAGAIN;
}

/// Faults strike first arrivals only: otherwise a repeat could help a member that would be stuck without it.
void ring(gba_group* handle, std::uint64_t sequence, bool first) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  const auto found = s.groups.find(handle->group);
  s.lost = s.lost || (first && s.chance(s.device_loss));
  if (!s.reached_by(*handle->opened) || handle->is_cut_off() || found == s.groups.end()) {
    return;
  }
  Group& group = found->second;
  const auto place = group.members.find(handle->member);
  if (place == group.members.end() || place->second != handle) {
    return;
  }
  if (first && s.chance(s.member_loss)) {
    s.lose(group, handle);
    return;
  }
  // uapi rules 9 to 13: the arrival carries 32 bits.
  const auto ahead =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) - static_cast<std::uint32_t>(group.released));
  if (ahead > 1 && !group.error) {
    s.violation = "member " + std::to_string(handle->member) + " rings " + std::to_string(sequence) + " when " +
                  std::to_string(group.released) + " was released last";
    s.fail(group);
    return;
  }
  if (group.error || ahead <= 0) {
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
      const bool reached = !s.death || (s.death->first >> member & 1) != 0;
      if (!other->opened->lost && s.chance(s.member_loss)) {
        missed.push_back(other);  // its arrival was counted, but it gets no release
      } else if (!other->opened->lost && !other->is_cut_off() && reached) {
        other->flag.store(group.released, std::memory_order_release);
      }
      if (s.death) {
        other->way = s.death->second;
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
  s.restart();
  s.limit = groups;
  s.returns = false;
  s.member_loss = s.device_loss = s.failing = 0;
  s.restarts_in = Call::kNone;
  s.refused = -1;
  s.most = 708;
  s.most_ports = -1;
  s.releases = s.arrivals = 0;
  s.leaves.clear();
  s.play.reset();
  s.death.reset();
  s.violation.clear();
  s.functions.clear();
  s.paths.clear();
  s.open_error = 0;
}
void play(const Play& play) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().play = play;
}
void fail_group() {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  for (auto& [number, group] : s.groups) {
    s.fail(group);
  }
}
void lose_member(std::uint32_t member, Way way) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  for (auto& [number, group] : s.groups) {
    if (const auto found = group.members.find(member); found != group.members.end()) {
      found->second->way = way;
    }
  }
}
void die_in_release(std::uint64_t mask, Way way) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().death = {mask, way};
}
std::uint64_t arrivals() {
  return the_switch().arrivals;
}
std::string violation() {
  const std::lock_guard guard(the_switch().lock);
  return the_switch().violation;
}
void list_functions(const std::vector<std::string>& addresses) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().functions = addresses;
}
void refuse_opening(int error) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().open_error = error;
}
std::vector<std::string> opened() {
  const std::lock_guard guard(the_switch().lock);
  return the_switch().paths;
}
int open_ports() {
  const std::lock_guard guard(the_switch().lock);
  return the_switch().ports;
}
void lose_members(std::uint32_t one_in) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().member_loss = one_in;
}
void limit_members(std::uint32_t most) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().most = most;
}
void lose_device() {
  const std::lock_guard guard(the_switch().lock);
  the_switch().lost = true;
}
void lose_device_at_random(std::uint32_t one_in) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().device_loss = one_in;
}
void return_at_open(std::uint32_t failing_one_in) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().returns = true;
  the_switch().failing = failing_one_in;
}
void restart_in(Call call) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().restarts_in = call;
}
void limit_ports(int most) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().most_ports = most;
}
void refuse_member(int member) {
  const std::lock_guard guard(the_switch().lock);
  the_switch().refused = member;
}
int leaves_by(std::thread::id thread) {
  const std::lock_guard guard(the_switch().lock);
  return the_switch().leaves[thread];
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

int gba_list(char (*addresses)[GBA_ADDRESS_SIZE], std::uint32_t room, std::uint32_t* count) {
  const std::lock_guard guard(the_switch().lock);
  const auto& functions = the_switch().functions;
  for (std::size_t i = 0; i < functions.size() && i < room; ++i) {
    std::snprintf(addresses[i], GBA_ADDRESS_SIZE, "%s", functions[i].c_str());
  }
  *count = static_cast<std::uint32_t>(functions.size());
  return 0;
}
int gba_open(const char* path, gba_device** out) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  s.paths.emplace_back(path == nullptr ? "(default)" : path);
  if (s.open_error != 0) {
    return failed(s.open_error, "the device is not available");
  }
  if (s.lost && s.returns) {
    s.restart();
  }
  if (s.lost || s.chance(s.failing)) {
    return failed(-ECONNREFUSED, "the device is not available");
  }
  if (s.ports == s.most_ports) {
    return failed(-EBUSY, "no port is free");
  }
  ++s.ports;
  *out = std::make_unique<gba_device>(gba_device{std::make_shared<Opened>(Opened{s.epoch})}).release();
  return 0;
}
void gba_close(gba_device* device) {
  const std::unique_ptr<gba_device> owner(device);
  const std::lock_guard guard(the_switch().lock);
  the_switch().ports -= device != nullptr ? 1 : 0;
}

int gba_device_check(gba_device* device) {
  const std::lock_guard guard(the_switch().lock);
  return the_switch().reached_by(*device->opened) ? 0 : failed(-ECONNABORTED, "the device is lost");
}

int gba_device_get_info(gba_device* /*device*/, gba_device_info* info) {
  *info = {};
  const std::lock_guard guard(the_switch().lock);
  info->members = the_switch().most;
  return 0;
}

int gba_group_alloc(gba_device* device, std::uint32_t count, std::uint64_t sequence, gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  s.restart_in(fake_gba::Call::kAllocate);
  if (!s.reached_by(*device->opened)) {
    return failed(-ENODEV, "lost");
  }
  if (count > s.most) {
    return failed(-EINVAL, "more members than a group takes");
  }
  for (std::uint32_t g = 0; g < static_cast<std::uint32_t>(s.limit) && !s.chance(s.failing); ++g) {
    if (!s.groups.contains(g)) {
      s.groups[g] = Group{++s.last_key, count, sequence, false, false, {}, std::vector<bool>(count)};
      *handle = {g, s.last_key, count, 0, sequence};
      return 0;
    }
  }
  return failed(-ENOSPC, "all groups are taken");
}

int gba_group_enable(gba_device* device, const gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  Group* const group = s.find(*handle);
  if (!s.reached_by(*device->opened) || group == nullptr) {
    return failed(-ENODEV, "lost");
  }
  group->enabled = true;
  return 0;
}

int gba_group_disable(gba_device* /*device*/, const gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  if (Group* const group = s.find(*handle)) {
    group->enabled = false;
  }
  return 0;
}

int gba_group_free(gba_device* /*device*/, const gba_group_handle* handle) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  if (Group* const group = s.find(*handle)) {
    if (group->enabled) {
      s.fail(*group);
    }
    s.groups.erase(handle->group);
  }
  return 0;
}

int gba_group_join(gba_device* device, const gba_group_handle* handle, std::uint32_t member, gba_group** out) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  *out = nullptr;
  s.restart_in(fake_gba::Call::kJoin);
  Group* const group = s.find(*handle);
  if (!s.reached_by(*device->opened) || s.refused == member || group == nullptr || s.chance(s.failing)) {
    return failed(-ENODEV, "lost");
  }
  auto joined = std::make_unique<gba_group>();
  joined->opened = device->opened;
  joined->silent_looks = s.play ? s.play->silent_looks : 0;
  joined->group = handle->group;
  joined->member = member;
  *out = joined.release();
  group->members[member] = *out;
  return 0;
}

int gba_group_leave(gba_group* handle) {
  const std::unique_ptr<gba_group> owner(handle);
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  try {
    ++s.leaves[std::this_thread::get_id()];
  } catch (const std::bad_alloc&) {
    // A test has taken the memory away, and does not count.
  }
  const auto found = s.groups.find(handle->group);
  if (found == s.groups.end()) {
    return 0;
  }
  Group& group = found->second;
  const auto place = group.members.find(handle->member);
  // By now the group may be another one with the same number.
  if (place != group.members.end() && place->second == handle) {
    group.members.erase(place);
    if (group.enabled && !handle->is_cut_off()) {
      s.fail(group);
    }
  }
  return 0;
}

void gba_group_arrive(gba_group* handle, std::uint64_t sequence) {
  ++the_switch().arrivals;
  if (const auto& play = the_switch().play) {
    play->before_arrival(handle->member, sequence);
  }
  ring(handle, sequence, true);
}

int gba_group_test(gba_group* handle, std::uint64_t sequence) {
  const int result = look(handle, sequence);
  if (const auto& play = the_switch().play) {
    play->after_look(handle->member);
  }
  return result;
}

int gba_group_sleep(gba_group* handle, std::uint64_t sequence, std::uint64_t /*max_ns*/) {
  ring(handle, sequence, false);
  if (!the_switch().play) {
    std::this_thread::sleep_for(std::chrono::microseconds{20});
  }
  const int status = gba_group_test(handle, sequence);
  const std::lock_guard guard(the_switch().lock);
  const bool lost = !the_switch().reached_by(*handle->opened);
  return status == -EAGAIN && lost ? failed(-ENODEV, "the device is lost") : status;
}

int gba_group_missing(gba_group* handle, std::uint64_t mask[GBA_GROUP_MASK_WORDS]) {
  auto& s = the_switch();
  const std::lock_guard guard(s.lock);
  const auto found = s.groups.find(handle->group);
  if (found == s.groups.end()) {
    return failed(-ENOENT, "no such group");
  }
  std::fill_n(mask, GBA_GROUP_MASK_WORDS, 0);
  for (std::size_t member = 0; member < found->second.arrived.size(); ++member) {
    mask[member / 64] |= std::uint64_t{!found->second.arrived[member]} << (member % 64);
  }
  return 0;
}
}
