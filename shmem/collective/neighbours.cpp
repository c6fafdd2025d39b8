// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/neighbours.hpp"

#include <array>
#include <span>

namespace shmem::by_neighbours {
namespace {

/// The highest level whose units' pieces fit into one gift each.
int highest_level(const NeighbourLevels& levels, std::size_t size) {
  int level = 0;
  while (level < levels.last() && static_cast<std::size_t>(levels.largest(level + 1)) * size <= kEagerLimit) {
    ++level;
  }
  return level;
}

/// One call of fcollect(): the leaders of the units of `level` give what they have of their units, and the leaders of
/// their groups put it where it belongs in `dest`; at level `top` all members do that, with the gifts of all units.
/// Each member begins with its own unit, so that not all read the same leader's gift at once.
bool fcollect_step(const Members& members, int level, int top, std::byte* dest, const void* source, std::size_t size) {
  EagerChannel& eager = *members.eager;
  const NeighbourLevels& levels = *eager.levels();
  const auto offset = [&](int unit) { return static_cast<std::size_t>(levels.first(level, unit)) * size; };
  const int own = levels.my_unit(level);
  const void* const mine = level == 0 ? source : dest + offset(own);
  if (!eager.begin() || !eager.give(mine, levels.leads_unit(level) ? offset(own + 1) - offset(own) : 0)) {
    return false;
  }
  const bool takes = level == top || levels.leads_unit(level + 1);
  const NeighbourLevels::Group group =
      level == top ? NeighbourLevels::Group{0, levels.units(level)} : levels.group(level);
  int unit = own;
  for (int left = takes ? group.end - group.begin : 0; left > 0; --left) {
    const auto given = eager.take(levels.first(level, unit));
    if (!given) {
      return false;
    }
    if (level == 0 || levels.first(level, unit) != members.me) {
      copy_small(dest + offset(unit), given.data, given.size);
    }
    unit = unit + 1 == group.end ? group.begin : unit + 1;
  }
  // A unit's leader gives in this call what its members have given in the calls before it.
  eager.end(level == top ? EagerChannel::before(top) : EagerChannel::Begun::kUnknown);
  return true;
}

}  // namespace

bool takes_fcollect(const Members& members, std::size_t size) {
  return size <= kEagerInline && highest_level(*members.eager->levels(), size) > 0;
}

Result<void> fcollect(const Members& members, std::byte* dest, const void* source, std::size_t size) {
  const int top = highest_level(*members.eager->levels(), size);
  for (int level = 0; level <= top; ++level) {
    if (!fcollect_step(members, level, top, dest, source, size)) {
      return members.eager->error();
    }
  }
  return {};
}

namespace {

/// What the leader of a group gives in collect(): whether the contents are included, the lengths, the contents. Lengths
/// of included contents are short.
class CollectGift {
 public:
  using Short = std::uint16_t;
  static_assert(kEagerLimit <= std::numeric_limits<Short>::max());

  /// Lengths and data of the members of a group; the data of those that are not eager is not looked at.
  void pack(std::span<const EagerChannel::Given> group, bool all_eager) {
    std::size_t all = sizeof(Short) * (1 + group.size());
    for (const auto& piece : group) {
      all = std::min(all, kEagerLimit) + std::min(piece.size, kEagerLimit + 1);
    }
    const bool included = all_eager && all <= kEagerLimit;
    put(static_cast<Short>(included ? 1 : 0));
    for (const auto& piece : group) {
      if (included) {
        put(static_cast<Short>(piece.size));
      } else {
        put(std::uint64_t{piece.size});
      }
    }
    for (const auto& piece : group) {
      if (included) {
        copy_small(&bytes_[size_], piece.data, piece.size);
        size_ += piece.size;
      }
    }
  }
  [[nodiscard]] const std::byte* data() const { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const { return size_; }

  static bool included(const std::byte* gift) { return get<Short>(gift, 0) != 0; }
  static std::size_t length(const std::byte* gift, int member) {
    const auto i = static_cast<std::size_t>(member);
    return included(gift) ? get<Short>(gift, sizeof(Short) * (1 + i))
                          : get<std::uint64_t>(gift, sizeof(Short) + sizeof(std::uint64_t) * i);
  }
  /// REQUIRES: included().
  static const std::byte* contents(const std::byte* gift, int members) {
    return gift + sizeof(Short) * (1 + static_cast<std::size_t>(members));
  }

 private:
  template <typename T>
  void put(T value) {
    std::memcpy(&bytes_[size_], &value, sizeof value);
    size_ += sizeof value;
  }
  template <typename T>
  static T get(const std::byte* gift, std::size_t offset) {
    T value;
    std::memcpy(&value, gift + offset, sizeof value);
    return value;
  }

  std::array<std::byte, kEagerLimit> bytes_;  // NOLINT(cppcoreguidelines-pro-type-member-init): as far as size_
  std::size_t size_ = 0;
};

/// All give lengths and eager contents; the leaders of groups pack what their groups give.
bool give_pieces(const Members& members, const void* source, std::size_t size, CollectGift& gift) {
  EagerChannel& eager = *members.eager;
  const NeighbourLevels& levels = *eager.levels();
  const auto write = [&](std::byte* to) {
    if (members.is_eager(Collective::kCollect, size)) {
      copy_small(to, source, size);
    }
  };
  if (!eager.begin() || !eager.give(size, write)) {
    return false;
  }
  const NeighbourLevels::Group group = levels.group(0);
  std::array<EagerChannel::Given, NeighbourLevels::kMostInGroup> pieces{};
  std::size_t count = 0;
  bool all_eager = true;
  for (int member = group.begin; levels.leads_unit(1) && member < group.end; ++member) {
    const auto given = eager.take(member);
    if (!given) {
      return false;
    }
    all_eager = all_eager && members.is_eager(Collective::kCollect, given.size);
    pieces[count++] = given;
  }
  if (count != 0) {
    gift.pack({pieces.data(), count}, all_eager);
  }
  eager.end(EagerChannel::Begun::kUnknown);
  return true;
}

/// The pieces of one group to `to`. Returns the end of them.
std::byte* fetch_pieces(const Members& members, int unit, const std::byte* gift, std::byte* to, const void* source) {
  const NeighbourLevels& levels = *members.eager->levels();
  const int first = levels.first(1, unit);
  const int count = levels.first(1, unit + 1) - first;
  const std::byte* contents = CollectGift::contents(gift, count);
  for (int i = 0; i < count; ++i) {
    const std::size_t length = CollectGift::length(gift, i);
    if (CollectGift::included(gift)) {
      copy_small(to, contents, length);
      contents += length;
    } else {
      copy_cached(to, members.at(source, first + i), length);
    }
    to += length;
  }
  return to;
}

}  // namespace

Result<void> collect(const Members& members, std::byte* dest, const void* source, std::size_t size,
                     const CheckTotal& check) {
  EagerChannel& eager = *members.eager;
  const NeighbourLevels& levels = *eager.levels();
  CollectGift gift;
  if (!give_pieces(members, source, size, gift) || !eager.begin() || !eager.give(gift.data(), gift.size())) {
    return eager.error();
  }
  std::size_t total = 0;
  bool all_included = true;
  for (int unit = 0; unit < levels.units(1); ++unit) {
    const auto given = eager.take(levels.first(1, unit));
    if (!given) {
      return eager.error();
    }
    all_included = all_included && CollectGift::included(given.data);
    for (int i = 0; i < levels.first(1, unit + 1) - levels.first(1, unit); ++i) {
      total += CollectGift::length(given.data, i);
    }
  }
  // Nothing is written before all is known: by the second pass all have given.
  const Result<void> fits = check(total);
  for (int unit = 0; fits && unit < levels.units(1); ++unit) {
    dest = fetch_pieces(members, unit, eager.take(levels.first(1, unit)).data, dest, source);
  }
  eager.end(EagerChannel::before(1));
  if (!all_included) {
    if (auto ok = members.sync(); !ok) {  // no member reads another member's memory any more
      return ok;
    }
  }
  return fits;
}

}  // namespace shmem::by_neighbours
