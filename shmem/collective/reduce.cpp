// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/reduce.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "shmem/collective/neighbours.hpp"
#include "shmem/collective/on_nodes.hpp"

namespace shmem {
namespace {

/// Up to this size every member combines everything: two syncs, and no more scratch than this.
constexpr std::size_t kSmall = 2048;
/// Bytes combined at a time: they stay in the cache closest to the processor.
constexpr std::size_t kPiece = std::size_t{8} << 10;

/// Combines elements `begin` to `end` of members `first` to `last` into `to`, which may be this member's own.
Result<void> combine(const Members& members, const Reduction& reduction, std::byte* to, const void* source,
                     std::size_t begin, std::size_t end, int last) {
  const std::size_t most = std::max<std::size_t>(kPiece / reduction.element, 1);
  alignas(64) std::array<std::byte, kPiece> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): for read()
  alignas(64) std::array<std::byte, kPiece> sum;   // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (std::size_t i = begin; i < end; i += most) {
    const std::size_t count = std::min(most, end - i);
    const std::size_t offset = i * reduction.element;
    const std::size_t bytes = count * reduction.element;
    for (int member = 0; member <= last; ++member) {
      const auto theirs = members.read(source, offset, bytes, member, room.data());
      if (!theirs) {
        return theirs.error();
      }
      if (member == 0) {
        std::memcpy(sum.data(), *theirs, bytes);
      } else {
        reduction.combine(sum.data(), *theirs, count);
      }
    }
    std::memcpy(to + (i - begin) * reduction.element, sum.data(), bytes);
  }
  return {};
}

Result<void> reduce_small(const Members& members, const Reduction& reduction, void* dest, const void* source,
                          std::size_t count) {
  if (auto ok = members.sync(); !ok) {
    return ok;
  }
  const std::size_t bytes = count * reduction.element;
  alignas(64) std::array<std::byte, kSmall> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): for read()
  alignas(64) std::array<std::byte, kSmall> all;   // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (int member = 0; member < members.size(); ++member) {
    const auto theirs = members.read(source, 0, bytes, member, room.data());
    if (!theirs) {
      return theirs.error();
    }
    if (member == 0) {
      copy_small(all.data(), *theirs, bytes);
    } else {
      reduction.combine(all.data(), *theirs, count);
    }
  }
  auto ok = members.sync();
  if (ok) {
    copy_small(static_cast<std::byte*>(dest), all.data(), bytes);
  }
  return ok;
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

/// The same as combine_eager() in two calls: the leader of each group combines what its group gives, and gives that.
class TwoSteps {
 public:
  TwoSteps(const Members& members, const Reduction& reduction, std::size_t count, int last)
      : members_(members), groups_(members), reduction_(reduction), count_(count), last_(last) {}

  Result<void> run(void* dest, const void* source) {
    if (!combine_group(source) || !combine_groups()) {
      return members_.eager->error();
    }
    if (result_.any) {
      std::memcpy(dest, result_.bytes.data(), count_ * reduction_.element);
    } else {
      std::memset(dest, 0, count_ * reduction_.element);
    }
    return {};
  }

 private:
  /// What has been combined so far, in the order of the members.
  struct Sum {
    alignas(64) std::array<std::byte, kEagerLimit> bytes;
    bool any = false;
  };

  void add(Sum& to, const void* from) {
    if (!std::exchange(to.any, true)) {
      std::memcpy(to.bytes.data(), from, count_ * reduction_.element);
    } else {
      reduction_.combine(to.bytes.data(), from, count_);
    }
  }
  bool take(Sum& to, int member) {
    const auto given = members_.eager->take(member);
    if (given) {
      add(to, given.data);
    }
    return static_cast<bool>(given);
  }

  /// The result of a member in the middle of its group needs a part of the group's members.
  [[nodiscard]] bool needs_part() const { return last_ >= groups_.first && last_ + 1 < groups_.end; }

  bool combine_group(const void* source) {
    EagerChannel& eager = *members_.eager;
    bool ok = eager.begin() && eager.give(source, count_ * reduction_.element);
    for (int member = groups_.first; ok && groups_.leads && member < groups_.end; ++member) {
      ok = take(group_sum_, member);
    }
    for (int member = groups_.first; ok && needs_part() && member <= last_; ++member) {
      ok = take(part_, member);
    }
    if (ok) {
      eager.end(EagerChannel::Begun::kUnknown);
    }
    return ok;
  }

  bool combine_groups() {
    EagerChannel& eager = *members_.eager;
    bool ok = eager.begin() && eager.give(group_sum_.bytes.data(), groups_.leads ? count_ * reduction_.element : 0);
    int leader = 0;
    for (; ok && leader < members_.size() && groups_.end_of(leader) <= last_ + 1; leader += groups_.size) {
      ok = take(result_, leader);
    }
    if (ok && needs_part()) {
      add(result_, part_.bytes.data());
    }
    if (ok) {
      // A leader gives in this call what its whole group has given in the last one.
      eager.end(leader >= members_.size() ? EagerChannel::Begun::kLast : EagerChannel::Begun::kUnknown);
    }
    return ok;
  }

  const Members& members_;
  const NeighbourGroups groups_;
  const Reduction& reduction_;
  const std::size_t count_;
  const int last_;
  Sum group_sum_, part_, result_;
};

Result<void> combine_small(const Members& members, const Reduction& reduction, void* dest, const void* source,
                           std::size_t count, int last) {
  if (members.size() <= kMostOneStep || count == 0) {
    return combine_eager(members, reduction, dest, source, count, last);
  }
  return TwoSteps(members, reduction, count, last).run(dest, source);
}

/// The elements that `member` combines for all. An element has 1 to 16 bytes, a power of two, so that none straddles
/// two lines.
struct Elements {
  std::size_t begin, end;
};
Elements elements_of(int member, const Members& members, std::size_t count, std::size_t element) {
  const Share share = share_of(member, members.size(), count * element);
  return {share.begin / element, (share.begin + share.size) / element};
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
  if (bytes <= kSmall && !members.splits(Collective::kReduce, bytes)) {
    return reduce_small(members, reduction, dest, source, count);
  }
  if (auto ok = members.sync(); !ok) {
    return ok;
  }
  // Each member combines one share of the elements into its own dest. In place too: no other member reads that share of
  // this member's source.
  auto* to = static_cast<std::byte*>(dest);
  const Elements mine = elements_of(members.me, members, count, reduction.element);
  auto ok = combine(members, reduction, to + mine.begin * reduction.element, source, mine.begin, mine.end,
                    members.size() - 1);
  if (ok) {
    ok = members.sync();
  }
  for (int distance = 1; ok && distance < members.size(); ++distance) {
    const int member = (members.me + distance) % members.size();
    const Elements theirs = elements_of(member, members, count, reduction.element);
    const std::size_t offset = theirs.begin * reduction.element;
    ok = members.fetch(to + offset, dest, offset, (theirs.end - theirs.begin) * reduction.element, member);
  }
  return ok ? members.sync() : ok;
}

namespace {

Result<void> scan_piece(const Members& members, const Reduction& reduction, std::byte* to, const void* source,
                        std::size_t begin, std::size_t end, int last) {
  if (last >= 0) {
    return combine(members, reduction, to, source, begin, end, last);
  }
  std::memset(to, 0, (end - begin) * reduction.element);
  return {};
}

/// In place: others read this member's source, so the result is written after they have.
Result<void> scan_in_place(const Members& members, const Reduction& reduction, std::byte* dest, std::size_t count,
                           int last) {
  alignas(64) std::array<std::byte, kPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const std::size_t most = std::max<std::size_t>(kPiece / reduction.element, 1);
  for (std::size_t i = 0; i < count; i += most) {
    const std::size_t end = std::min(count, i + most);
    auto ok = scan_piece(members, reduction, piece.data(), dest, i, end, last);
    if (ok) {
      ok = members.sync();
    }
    if (!ok) {
      return ok;
    }
    std::memcpy(dest + i * reduction.element, piece.data(), (end - i) * reduction.element);
  }
  return {};
}

}  // namespace

Result<void> scan(const Members& members, const Reduction& reduction, void* dest, const void* source, std::size_t count,
                  bool inclusive) {
  if (members.has_nothing_to_do(count)) {
    return {};
  }
  if (members.spanning != nullptr) {
    return on_nodes::scan(members, reduction, dest, source, count, inclusive);
  }
  const int last = inclusive ? members.me : members.me - 1;
  if (members.is_eager(Collective::kScan, count * reduction.element)) {
    return combine_small(members, reduction, dest, source, count, last);
  }
  if (auto ok = members.sync(); !ok) {
    return ok;
  }
  auto* to = static_cast<std::byte*>(dest);
  if (dest == source && count != 0) {
    return scan_in_place(members, reduction, to, count, last);
  }
  auto ok = scan_piece(members, reduction, to, source, 0, count, last);
  return ok ? members.sync() : ok;
}

}  // namespace shmem
