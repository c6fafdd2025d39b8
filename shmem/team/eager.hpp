// SPDX-License-Identifier: Apache-2.0
// Small data of collective calls, sent along with the words by which the members of a team synchronise.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/layout/sync_view.hpp"
#include "shmem/result.hpp"
#include "shmem/team/neighbour_levels.hpp"

namespace shmem {

/// Copies up to kEagerLimit bytes, most often a few: without a call if they fit into two words.
inline void copy_small(std::byte* to, const void* from, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(from);
  if (size == sizeof(std::uint64_t)) {
    std::memcpy(to, bytes, sizeof(std::uint64_t));
  } else if (size != 0) {
    std::memmove(to, bytes, size);  // a member's own part may be in place
  }
}

/// One member's side, for one team. Used by one thread at a time, as the team is.
///
/// Calls are numbered from 1, the same on all members. In each call a member may store data next to a word of its own,
/// and then the number in the word; other members wait for the number, and read the data. A member has kEagerSlots such
/// places and uses them in turn, and kEagerRooms for data that does not fit next to the word. In most teams,
/// kBroadcastSlots and kBroadcastRooms others are for calls in which it gives alone, and kEagerRooms larger rooms for
/// those in which each gives something else to each of the others. Before it reuses a place it waits
/// until the others have finished the call that used it before, so it is never more than kBroadcastSlots calls ahead of
/// them.
///
/// Each member gives or takes in each call. To learn what the others have finished, a member of a team of up to
/// kMostOneStep reads a word of each; in a larger team the members count themselves in groups of groups, and it reads
/// the word in which the last one of all has left the number.
///
/// begin(), give() and take() fail if the channel has failed; error() says why.
class EagerChannel {
 public:
  /// `count` is the number of the last call in this slot, the same on all members.
  EagerChannel(const Job& job, const TeamMap& map, const SyncView& view, int slot, std::uint64_t count)
      : job_(job), map_(map), view_(view), slot_(slot), count_(count), finished_(count), levels_(levels_of(view)) {}

  /// How the members pass on small data in several calls; nullptr: they are few, and one call is faster.
  [[nodiscard]] const NeighbourLevels* levels() const { return levels_.get(); }

  /// Each member, at the beginning of a call.
  [[nodiscard]] bool begin() {
    if (failed_) [[unlikely]] {
      return false;
    }
    ++count_;
    // For messages, and for the next team that gets the slot, like TeamSync::entered. Release: pairs with
    // TeamSlots::last_count().
    view_.mine().calls.store(count_, std::memory_order_release);
    return true;
  }
  /// The members that give in a call. In calls of one giver, it may be many calls ahead of the others. kEach: all, and
  /// to each of the others something else.
  enum class Givers { kAll, kOne, kEach };
  /// What fits into a gift by kEach.
  [[nodiscard]] std::size_t most_to_each() const { return view_.has_broadcasts() ? kAlltoallLimit : kEagerLimit; }
  /// Stores the size, and the data if it has up to kEagerLimit bytes; kEach: most_to_each(). Once per call.
  template <Givers kGivers = Givers::kAll>
  [[nodiscard]] bool give(const void* data, std::size_t size) {
    return give<kGivers>(size, [data, size](std::byte* to) { copy_small(to, data, size); });
  }
  /// The same; write(to) stores the data, unless there is too much of it. Inline: otherwise the registers that it saves
  /// are a fifteenth of the instructions of a small call.
  template <Givers kGivers = Givers::kAll, typename Write>
  [[nodiscard, gnu::always_inline]] bool give(std::size_t size, Write write) {
    const int me = view_.me();
    if (kGivers == Givers::kOne && view_.has_broadcasts()) {
      BroadcastPlaces& mine = view_.broadcasts(me);
      return give_in(mine.place, mine.room, size, write);
    }
    if (kGivers == Givers::kEach && size > kEagerLimit) {
      return give_in_room(view_.eager(me).place[count_ % kEagerSlots], view_.broadcasts(me).alltoall, size, write);
    }
    return give_in(view_.eager(me).place, view_.rooms(me), size, write);
  }
  struct Given {
    const std::byte* data = nullptr;  // nullptr: the channel has failed
    std::size_t size = 0;
    explicit operator bool() const { return data != nullptr; }
  };
  /// Waits for what that member gives in this call. Valid until end().
  template <Givers kGivers = Givers::kAll>
  [[nodiscard]] Given take(int member) {
    if (kGivers == Givers::kOne && view_.has_broadcasts()) {
      BroadcastPlaces& theirs = view_.broadcasts(member);
      return take_from(theirs.place, theirs.room);
    }
    Given given = take_from(view_.eager(member).place, view_.rooms(member));
    if (kGivers == Givers::kEach && given.size > kEagerLimit) {
      given.data = view_.broadcasts(member).alltoall[count_ % kEagerRooms].data.data();
    }
    return given;
  }
  /// Which call all members are known to have begun: this one, or the one so many calls before it.
  enum class Begun : int { kUnknown = -1, kThis = 0 };
  static constexpr Begun before(int calls) { return static_cast<Begun>(calls); }
  /// What was taken is no longer read. `tell`: the giver waits to hear it, in wait_for_readers().
  void end(Begun by_all, bool tell = false) {
    // A member that has begun a call has finished the calls before it.
    if (by_all != Begun::kUnknown) {
      finished_ = std::max(finished_, count_ - 1 - static_cast<std::uint64_t>(by_all));
    }
    view_.mine().calls_over.store(count_, std::memory_order_release);
    if (tell || count_ % kFinishedEach == 0) {
      if (levels_) [[unlikely]] {
        count_finished();
      } else {
        publish(view_.eager(view_.me()).finished, count_);
      }
    }
  }
  /// Waits until all other members have ended this call. REQUIRES: all of them tell; the team is no larger than
  /// kMostOneStep.
  [[nodiscard]] bool wait_for_readers() { return wait_for_place(count_); }
  using Numbers = std::array<std::uint64_t, 2>;
  /// Collective, some calls: each number becomes the least that any member has given. Unless it is `for_all`, only
  /// member 0 waits for all and gets that; the others keep numbers without a meaning.
  [[nodiscard]] bool least(Numbers& numbers, bool for_all);
  [[nodiscard]] bool has_failed() const { return failed_.has_value(); }
  /// REQUIRES: has_failed().
  [[nodiscard]] const Error& error() const { return *failed_; }

 private:
  /// A member can be at least kEagerSlots - kFinishedEach calls ahead. A member that reuses a room waits for a call
  /// before the current one.
  static_assert(kFinishedEach < kEagerSlots && kFinishedEach <= kEagerRooms);
  static_assert(kFinishedEach <= kBroadcastSlots / 2 && kFinishedEach <= kBroadcastRooms / 2);

  /// Prefetches a line for writing: other members have read it, and invalidating their copies overlaps with the wait.
  static void fetch_to_write(const void* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
  }
  static void fetch_lines(const void* begin, std::size_t size) {
    constexpr std::size_t kLine = 64;
    std::size_t line = 0;
    do {
      fetch_to_write(static_cast<const std::byte*>(begin) + line);
      line += kLine;
    } while (line < size);
  }

  static std::unique_ptr<const NeighbourLevels> levels_of(const SyncView& view);
  bool wait_for_place(std::uint64_t number);
  void count_finished();
  bool wait_for_data(EagerHead& theirs);
  template <typename Word>
  bool wait(Word& word, std::uint64_t number);
  template <typename Slots, typename Rooms, typename Write>
  bool give_in(Slots& places, Rooms& rooms, std::size_t size, Write write) {
    constexpr std::uint64_t kPlaces = std::tuple_size_v<Slots>;
    auto& mine = places[count_ % kPlaces];
    if (size > mine.data.size()) [[unlikely]] {
      return give_in_room(mine, rooms, size, write);
    }
    if (!has_place<kPlaces, kPlaces>()) [[unlikely]] {
      return false;
    }
    mine.size = size;
    write(mine.data.data());
    publish(mine, count_);
    // The next call is probably as large as this one. Behind the last place are rooms of this member, so that one fetch
    // is superfluous.
    if constexpr (std::is_same_v<Slots, decltype(BroadcastPlaces::place)>) {
      fetch_lines(&mine + 1, sizeof(EagerHead) + size);
    } else {
      fetch_to_write(&places[(count_ + 1) % kPlaces]);
    }
    return true;
  }
  template <typename Slot, typename Rooms, typename Write>
  bool give_in_room(Slot& mine, Rooms& rooms, std::size_t size, Write write) {
    constexpr std::uint64_t kRooms = std::tuple_size_v<Rooms>;
    constexpr std::size_t kMost = sizeof(Rooms::value_type::data);
    if (!has_place < kRooms, std::is_same_v<Slot, BroadcastSlot> ? kBroadcastSlots : kEagerSlots > ()) [[unlikely]] {
      return false;
    }
    mine.size = size;
    if (size <= kMost) {
      write(rooms[count_ % kRooms].data.data());
    }
    publish(mine, count_);
    // Not while a member may still read what is there.
    if (size <= kMost && count_ < finished_ + kRooms) {
      fetch_lines(&rooms[(count_ + 1) % kRooms], std::min(size, kEagerLimit));
    }
    return true;
  }
  /// Waits for one of kNumber places to be free. One that has used up its many places waits until half of them are, so
  /// that it waits less often.
  template <std::uint64_t kNumber, std::uint64_t kSlots>
  bool has_place() {
    constexpr std::uint64_t kInUse = kSlots > kEagerSlots ? kNumber / 2 : kNumber;
    return count_ <= finished_ + kNumber || wait_for_place(count_ - kInUse);
  }
  template <typename Slots, typename Rooms>
  Given take_from(Slots& places, Rooms& rooms) {
    auto& theirs = places[count_ % std::tuple_size_v<Slots>];
    // Acquire: pairs with publish() in give_in() and give_in_room(); the data next to the word is visible.
    if (theirs.value.load(std::memory_order_acquire) < count_ && !wait_for_data(theirs)) [[unlikely]] {
      return {};
    }
    const std::size_t size = theirs.size;
    return {size > theirs.data.size() ? rooms[count_ % rooms.size()].data.data() : theirs.data.data(), size};
  }

  const Job& job_;
  const TeamMap& map_;
  const SyncView& view_;
  int slot_;
  std::uint64_t count_;          // of the last call begun
  std::uint64_t finished_;       // all members are known to have finished the calls up to this one
  std::optional<Error> failed_;  // ends the channel
  std::unique_ptr<const NeighbourLevels> levels_;
};

}  // namespace shmem
