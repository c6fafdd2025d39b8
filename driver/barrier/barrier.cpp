// SPDX-License-Identifier: Apache-2.0
#include "driver/barrier/barrier.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

namespace gba::barrier {
namespace {

using std::chrono::nanoseconds;

constexpr const char* kOthersTrouble = "another member lost the device";
/// Far beyond any use, and a few times it is still a time of the clock.
constexpr std::chrono::hours kLongestRetry{24};

MemberPlace place_of(const gba_barrier_config& config) {
  if (config.group_members == 0) {
    return {.port = config.port, .members = config.members, .member = config.member};
  }
  return {.port = config.port, .members = config.group_members, .member = config.group_member};
}

}  // namespace

bool Barrier::config_is_sound(const gba_barrier_config& config) {
  const bool shares = config.port == nullptr || config.sharer_count > 0;
  return config.size == sizeof(config) && config.member < config.members && config.word != nullptr &&
         (config.words != nullptr || (config.read != nullptr && config.alarm != nullptr)) &&
         (config.raise == nullptr || config.alarm != nullptr) && (!shares || config.released != nullptr) &&
         (config.sharer_count == 0 || (config.sharers != nullptr && config.words != nullptr)) &&
         (config.offer == nullptr || config.port != nullptr) &&
         (config.group_members == 0 || config.group_member < config.group_members);
}

Barrier::Barrier(const gba_barrier_config& config)
    : words_(config),
      place_(place_of(config)),
      alarm_(config.alarm),
      raise_(config.raise),
      context_(config.context),
      released_(config.released),
      sharers_(config.sharers),
      sharer_count_(config.sharer_count),
      record_(config.offer) {
  if (record_ != nullptr) {
    const std::uint64_t retry = std::min<std::uint64_t>(config.retry_ns, nanoseconds(kLongestRetry).count());
    recovery_.emplace(words_, place_, config.member, record_, nanoseconds{static_cast<std::int64_t>(retry)});
  }
}

Result<gba_group_handle> Barrier::offer(std::uint64_t sequence) {
  auto owned = place_.make_group(sequence);
  if (!owned) {
    return owned.error();
  }
  candidate_.owned = *std::move(owned);
  const gba_group_handle handle = candidate_.owned->handle();
  if (record_ != nullptr) {
    *record_ = handle;
  }
  return handle;
}

Result<void> Barrier::join(const gba_group_handle* handle) {
  if (place_.port == nullptr) {
    return {};
  }
  auto joined = place_.join(handle != nullptr ? *handle : *record_);
  if (!joined) {
    return joined.error();
  }
  candidate_.membership = *std::move(joined);
  return {};
}

void Barrier::begin(std::uint64_t sequence) {
  group_ = std::exchange(candidate_, {});
  base_ = sequence;
  uses_device_ = true;
  off_ = raised_ = false;
  failure_ = 0;
  trouble_[0] = '\0';
  before_group_ = by_device_;
  update_plain();
}

void Barrier::disable() {
  recovery_.reset();
  uses_device_ = false;
  update_plain();
  if (group_.owned) {
    group_.owned->disable();
  }
}

void Barrier::leave() {
  uses_device_ = false;
  update_plain();
  candidate_.membership.reset();
  group_.membership.reset();
}

void Barrier::free() {
  leave();
  candidate_.owned.reset();
  group_.owned.reset();
}

void Barrier::update_plain() {
  const bool is_plain = uses_device_ && !off_ && group_.membership != nullptr && sharer_count_ == 0;
  plain_ = is_plain ? process_ : kNotPlain;
}

void Barrier::note_trouble(int failure, const char* text) {
  if (trouble_[0] != '\0') {
    return;
  }
  failure_ = failure;
  const std::string_view words = *text != '\0' ? text : ::strerrordesc_np(-failure);
  trouble_[words.copy(trouble_.data(), trouble_.size() - 1)] = '\0';
}

CheckVote Barrier::check_vote() {
  if (!recovery_ || !Recovery::is_check(sequence_)) {
    return CheckVote::kOff;
  }
  try {
    return recovery_->vote(sequence_);
  } catch (const std::exception&) {
    return CheckVote::kOff;  // no memory
  }
}

void Barrier::arrive_otherwise(std::uint64_t k) {
  if (is_inherited()) {
    return;
  }
  if (!uses_device_) {
    words_.publish(k, check_vote());
    seen_ = 0;
    stage_ = Stage::kSoftware;
    return;
  }
  words_.publish(k, off_ ? Vote::kOff : Vote::kOn);
  if (off_) {
    pull();
  } else if (group_.membership == nullptr) {
    stage_ = Stage::kFollowing;
  } else {
    stage_ = Stage::kGathering;
    asked_ = 0;
    ring_for_sharers();
  }
}

/// A holder rings for itself and for those that share its port, when they are all there. No barrier that the device
/// releases has an OFF word (uapi rule 28), so it does not ring for a member that says OFF.
void Barrier::ring_for_sharers() {
  for (; asked_ < sharer_count_; ++asked_) {
    std::uint64_t vote = 0;
    if (words_.read(sharers_[asked_], sequence_, vote) != 0) {
      return;
    }
    if (vote != static_cast<std::uint64_t>(Vote::kOn)) {
      note_trouble(0, kOthersTrouble);
      pull();
      return;
    }
  }
  stage_ = Stage::kRung;
  gba_group_arrive(group_.membership.get(), sequence_);
}

Outcome Barrier::released() {
  stage_ = Stage::kIdle;
  ++by_device_;
  if (released_ != nullptr && group_.membership != nullptr) {
    // Release: pairs with the acquire in test_otherwise(): hands on what the device's release has shown to this member.
    __atomic_store_n(released_, sequence_, __ATOMIC_RELEASE);
  }
  return Outcome::kReleased;
}

Outcome Barrier::not_released(int status) {
  if (status != -EAGAIN) {
    note_trouble(status, gba_error_text());
    pull();
    return look_at_words();
  }
  return alarmed() ? pull_for_others() : Outcome::kPending;
}

Outcome Barrier::test_otherwise() {
  if (is_inherited()) {
    return failed(-ECHILD);
  }
  if (stage_ == Stage::kGathering) {
    ring_for_sharers();
    if (stage_ == Stage::kRung) {
      return test();
    }
  }
  switch (stage_) {
    case Stage::kFollowing:
      // Acquire: pairs with the release in released().
      if (__atomic_load_n(released_, __ATOMIC_ACQUIRE) == sequence_) {
        return released();
      }
      return others_pull() ? pull_for_others() : Outcome::kPending;
    case Stage::kGathering:
      return others_pull() ? pull_for_others() : Outcome::kPending;
    case Stage::kPulled:
    case Stage::kSoftware:
      return look_at_words();
    case Stage::kIdle:
    case Stage::kRung:
      break;
  }
  return Outcome::kReleased;  // none is open
}

/// Rule 27. OFF: that member does not ring k. PULL, or an alarm: it has trouble; perhaps its arrival never reached the
/// device. The device does not know that, so only this word says that k will not be released.
bool Barrier::others_pull() const {
  if (alarm_ != nullptr) {
    return alarmed();
  }
  for (std::uint32_t i = 0; i < words_.pairs(); ++i) {
    std::uint64_t vote = 0;
    if (words_.read(i, sequence_, vote) == 0 && vote != static_cast<std::uint64_t>(Vote::kOn)) {
      return true;
    }
  }
  return false;
}

Outcome Barrier::pull_for_others() {
  note_trouble(0, kOthersTrouble);
  pull();
  return look_at_words();
}

/// Rule 27. An alarm is raised at the first look at words, since that may fail.
void Barrier::pull() {
  stage_ = Stage::kPulled;
  seen_ = 0;
  off_seen_ = false;
  if (alarm_ == nullptr && !off_) {
    words_.publish(sequence_, Vote::kPull);  // an OFF word stays OFF
  }
  if (alarm_ != nullptr && raise_ == nullptr) {
    raise_alarm();
  }
  off_ = true;
  update_plain();
}

int Barrier::raise_alarm() {
  if (raise_ != nullptr) {
    // Those who wait for the next barrier find the same alarm: once for each group is enough.
    const int error = raised_ ? 0 : raise_(context_, sequence_);
    raised_ = raised_ || error == 0;
    return error;
  }
  std::uint64_t last = load_alarm(alarm_);
  while (last < sequence_ &&
         !__atomic_compare_exchange_n(alarm_, &last, sequence_, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return 0;
}

Outcome Barrier::look_at_words() {
  const bool pulled = stage_ == Stage::kPulled;
  if (pulled && raise_ != nullptr) {
    if (const int error = raise_alarm(); error != 0) {
      return failed(error);
    }
  }
  for (; seen_ < words_.pairs(); ++seen_) {
    std::uint64_t vote = 0;
    if (const int error = words_.read(seen_, sequence_, vote); error != 0) {
      return failed(error);
    }
    off_seen_ = off_seen_ || vote == static_cast<std::uint64_t>(Vote::kOff);
  }
  ++in_software_;
  if (!pulled) {
    conclude();
    return Outcome::kCompleted;
  }
  // Rule 28: after an OFF the device releases no member from k, so all members come here and see the same words, which
  // stay until all have entered k + 1.
  stage_ = Stage::kIdle;
  if (off_seen_) {
    lose();
  }
  return Outcome::kCompleted;
}

/// No member waits for this group any more. It is freed before the device is used again, so that there is room for the
/// next one.
void Barrier::lose() {
  uses_device_ = false;
  update_plain();
  if (place_.port != nullptr) {
    place_.port->retire(std::exchange(group_, {}));
  }
  if (recovery_) {
    recovery_->lost(by_device_ - before_group_);
  }
}

void Barrier::conclude() {
  stage_ = Stage::kIdle;
  if (uses_device_ || !recovery_ || !Recovery::is_check(sequence_)) {
    return;
  }
  if (auto group = recovery_->conclude(sequence_)) {
    candidate_ = *std::move(group);
    begin(sequence_);
  }
}

void Barrier::turn_off(int failure, const char* trouble) {
  note_trouble(failure, trouble);
  const bool on_device = stage_ == Stage::kRung || stage_ == Stage::kGathering || stage_ == Stage::kFollowing;
  if (on_device) {
    pull();
  }
  off_ = true;
  update_plain();
}

int Barrier::missing(std::uint64_t* mask) {
  if (stage_ == Stage::kRung && !words_.mapped()) {
    return gba_group_missing(group_.membership.get(), mask);
  }
  std::memset(mask, 0, GBA_GROUP_MASK_WORDS * sizeof(*mask));
  const std::uint32_t most = std::min<std::uint32_t>(words_.size(), GBA_GROUP_MASK_WORDS * 64);
  for (std::uint32_t i = words_.mapped() ? 0 : seen_; i < most && stage_ != Stage::kIdle; ++i) {
    std::uint64_t vote = 0;
    if (!words_.mapped() || words_.read(i, sequence_, vote) != 0) {
      mask[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    if (!words_.mapped()) {
      break;  // looking at the others' would take a message each
    }
  }
  return 0;
}

gba_barrier_status Barrier::status() const {
  return {.sequence = sequence_,
          .by_device = by_device_,
          .in_software = in_software_,
          .served = by_device_ - before_group_,
          .uses_device = uses_device_ ? 1U : 0U,
          .open = stage_ != Stage::kIdle ? 1U : 0U,
          .pulled = stage_ == Stage::kPulled ? 1U : 0U,
          .failure = failure_,
          .trouble = trouble_.data()};
}

}  // namespace gba::barrier
