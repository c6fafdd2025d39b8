// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/reduce.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "shmem/collective/on_nodes.hpp"
#include "shmem/memory/cached_copy.hpp"

namespace shmem {
namespace {

/// Up to this size every member combines everything: two syncs.
constexpr std::size_t kSmall = 2048;
static_assert(kSmall <= kCombined);

/// Combines a share of what members 0 to `last` have in `source`. write(at, sums, part) is called as by
/// combine_parts(), and returns a Result.
template <typename Write>
Result<void> combine(const Members& members, const Reduction& reduction, const void* source, const Share& share,
                     int last, Write write) {
  alignas(64) std::array<std::byte, kCombined> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): for read()
  Result<void> ok;
  combine_parts(
      reduction, share, last + 1,
      [&](int member, std::size_t at, std::size_t part) -> const std::byte* {
        auto theirs = ok ? members.read(source, at, part, member, room.data()) : ok.error();
        if (!theirs) {
          ok = std::move(theirs).error();
          return nullptr;
        }
        return *theirs;
      },
      [&](std::size_t at, const std::byte* sums, std::size_t part) {
        if (ok) {
          ok = write(at, sums, part);
        }
      });
  return ok;
}

/// The same to `to`, of which other members do not read this share.
Result<void> combine_to(std::byte* to, const Members& members, const Reduction& reduction, const void* source,
                        const Share& share, int last) {
  return combine(members, reduction, source, share, last,
                 [&](std::size_t at, const std::byte* sums, std::size_t part) -> Result<void> {
                   copy_cached(to + at, sums, part);
                   return {};
                 });
}

/// The same if others may read it there: what is up to kCombined bytes is written when all have combined it.
Result<void> combine_in_place(std::byte* to, const Members& members, const Reduction& reduction, const void* source,
                              std::size_t bytes, int last) {
  return combine(members, reduction, source, {0, bytes}, last,
                 [&](std::size_t at, const std::byte* sums, std::size_t part) {
                   auto ok = members.sync();
                   if (ok) {
                     copy_cached(to + at, sums, part);
                   }
                   return ok;
                 });
}

/// Combines what members 0 to `last` give; zeros if there are none. In place too: `dest` is written after this member
/// has given a copy of `source`.
Result<void> combine_eager(const Members& members, const Reduction& reduction, void* dest, const void* source,
                           std::size_t count, int last) {
  const std::size_t bytes = count * reduction.element;
  const auto give = [source, bytes](std::byte* to) { copy_small(to, source, bytes); };
  auto ok = exchange(members, bytes, give, last, [&](int member, const EagerChannel::Given& given) {
    if (member == 0) {
      copy_small(static_cast<std::byte*>(dest), given.data, bytes);
    } else {
      reduction.combine(dest, given.data, count);
    }
  });
  if (last < 0 && bytes != 0) {
    std::memset(dest, 0, bytes);
  }
  return ok;
}

/// The same as combine_eager() in several calls (team/neighbour_levels.hpp): the leader of each group combines what its
/// group gives, and gives that in the next call.
class BySteps {  // NOLINT(clang-analyzer-optin.performance.Padding): the sums, of a cache line each, come last
 public:
  BySteps(const Members& members, const Reduction& reduction, std::size_t count, int last)
      : eager_(*members.eager), levels_(*eager_.levels()), reduction_(reduction), count_(count), end_(last + 1) {}

  Result<void> run(void* dest, const void* source) {
    for (int level = 0; level <= levels_.last(); ++level) {
      if (!step(level, source)) {
        return eager_.error();
      }
    }
    if (result_->any) {
      std::memcpy(dest, result_->bytes.data(), bytes());
    } else {
      std::memset(dest, 0, bytes());
    }
    return {};
  }

 private:
  /// What has been combined so far, in the order of the members.
  struct Sum {  // NOLINT(cppcoreguidelines-pro-type-member-init): bytes count if `any`
    alignas(64) std::array<std::byte, kEagerLimit> bytes;
    bool any = false;
  };

  [[nodiscard]] std::size_t bytes() const { return count_ * reduction_.element; }
  void add(Sum& to, const void* from) {
    if (!std::exchange(to.any, true)) {
      std::memcpy(to.bytes.data(), from, bytes());
    } else {
      reduction_.combine(to.bytes.data(), from, count_);
    }
  }
  /// Adds what the leaders of units give.
  bool take(Sum& to, int level, int begin, int end) {
    for (int unit = begin; unit < end; ++unit) {
      const auto given = eager_.take(levels_.first(level, unit));
      if (!given) {
        return false;
      }
      add(to, given.data);
    }
    return true;
  }

  /// Call `level`: each unit gives its sum.
  bool step(int level, const void* source) {
    const bool at_end = level == levels_.last();
    const void* const mine = level == 0 ? source : sum_.bytes.data();
    if (!eager_.begin() || !eager_.give(mine, levels_.leads_unit(level) ? bytes() : 0) || !take_part(level)) {
      return false;
    }
    if (!at_end && levels_.leads_unit(level + 1)) {
      const NeighbourLevels::Group group = levels_.group(level);
      sum_.any = false;
      if (!take(sum_, level, group.begin, group.end)) {
        return false;
      }
    }
    // A unit's leader gives in the last call what its members have given in the calls before it.
    const bool heard_of_all = at_end && end_ == levels_.members();
    eager_.end(heard_of_all ? EagerChannel::before(level) : EagerChannel::Begun::kUnknown);
    return true;
  }

  /// This member's result needs those units of its group that end before member end_, unless all of them do: then the
  /// group is a unit at the next level. What it needs of a level comes before what it needed of the levels below.
  bool take_part(int level) {
    const NeighbourLevels::Group group = levels_.group(level);
    if (level < levels_.last() && levels_.first(level, group.end) <= end_) {
      return true;
    }
    int end = group.begin;
    while (end < group.end && levels_.first(level, end + 1) <= end_) {
      ++end;
    }
    if (!take(*part_, level, group.begin, end)) {
      return false;
    }
    if (part_->any) {
      if (result_->any) {
        add(*part_, result_->bytes.data());
      }
      std::swap(part_, result_);
      part_->any = false;
    }
    return true;
  }

  EagerChannel& eager_;
  const NeighbourLevels& levels_;
  const Reduction& reduction_;
  const std::size_t count_;
  const int end_;  // the result combines the members before this one
  Sum sum_;        // of the largest unit that this member leads
  Sum one_, other_;
  Sum* part_ = &one_;
  Sum* result_ = &other_;
};

Result<void> combine_small(const Members& members, const Reduction& reduction, void* dest, const void* source,
                           std::size_t count, int last) {
  if (members.eager->levels() == nullptr || count == 0) {
    return combine_eager(members, reduction, dest, source, count, last);
  }
  return BySteps(members, reduction, count, last).run(dest, source);
}

/// The same for more bytes than are eager, of many members. In place too: a piece of `dest` is written after this
/// member has given a copy of that piece of `source`.
Result<void> reduce_pieces(const Members& members, const Reduction& reduction, void* dest, const void* source,
                           std::size_t count) {
  const std::size_t most = kEagerLimit / reduction.element;
  Result<void> ok;
  for (std::size_t i = 0; ok && i < count; i += most) {
    const std::size_t offset = i * reduction.element;
    ok = combine_small(members, reduction, static_cast<std::byte*>(dest) + offset,
                       static_cast<const std::byte*>(source) + offset, std::min(most, count - i), members.size() - 1);
  }
  return ok;
}

}  // namespace

Result<void> reduce(const Members& members, const Reduction& reduction, void* dest, const void* source,
                    std::size_t count) {
  if (members.has_nothing_to_do(count)) {
    return {};
  }
  if (members.spanning != nullptr) {
    return on_nodes::reduce(members, reduction, dest, source, count);
  }
  const std::size_t bytes = count * reduction.element;
  if (members.is_eager(Collective::kReduce, bytes)) {
    return combine_small(members, reduction, dest, source, count, members.size() - 1);
  }
  const bool is_small = bytes <= kSmall && !members.splits(Collective::kReduce, bytes);
  if (is_small && members.is_eager(Collective::kReduce, kEagerLimit) && members.eager->levels() != nullptr) {
    return reduce_pieces(members, reduction, dest, source, count);
  }
  if (auto ok = members.sync(); !ok) {
    return ok;
  }
  auto* to = static_cast<std::byte*>(dest);
  if (is_small) {
    return combine_in_place(to, members, reduction, source, bytes, members.size() - 1);
  }
  // Each member combines one share into its own dest. In place too: no other member reads that share of this member's
  // source.
  const Share mine = share_of(members.me, members.size(), bytes);
  auto ok = combine_to(to, members, reduction, source, mine, members.size() - 1);
  if (ok) {
    ok = members.sync();
  }
  if (ok) {
    ok = fetch_shares(members.me, members.size(), bytes, [&](int member, const Share& share) {
      return members.fetch(to + share.begin, dest, share.begin, share.size, member);
    });
  }
  return ok ? members.sync() : ok;
}

Result<void> scan(const Members& members, const Reduction& reduction, void* dest, const void* source, std::size_t count,
                  bool inclusive) {
  if (members.has_nothing_to_do(count)) {
    return {};
  }
  if (members.spanning != nullptr) {
    return on_nodes::scan(members, reduction, dest, source, count, inclusive);
  }
  const int last = inclusive ? members.me : members.me - 1;
  const std::size_t bytes = count * reduction.element;
  if (members.is_eager(Collective::kScan, bytes)) {
    return combine_small(members, reduction, dest, source, count, last);
  }
  if (auto ok = members.sync(); !ok) {
    return ok;
  }
  auto* to = static_cast<std::byte*>(dest);
  if (dest == source && count != 0) {
    return combine_in_place(to, members, reduction, dest, bytes, last);
  }
  auto ok = combine_to(to, members, reduction, source, {0, bytes}, last);
  return ok ? members.sync() : ok;
}

}  // namespace shmem
