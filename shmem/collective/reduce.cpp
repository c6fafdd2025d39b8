// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/reduce.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "shmem/collective/on_nodes.hpp"

namespace shmem {
namespace {

/// Up to here every member may combine everything: two meetings, and no more than this to put aside.
constexpr std::size_t kSmall = 2048;
/// Combined at a time, so that what is being combined stays in the cache closest to the processor.
constexpr std::size_t kPiece = std::size_t{8} << 10;

/// Elements `begin` to `end` of members `first` to `last`, combined into `to`. `to` may be where they stand at this
/// member.
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
        return tl::make_unexpected(theirs.error());
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
  if (auto ok = members.meet(); !ok) {
    return ok;
  }
  alignas(64) std::array<std::byte, kSmall> all;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  auto ok = combine(members, reduction, all.data(), source, 0, count, members.size() - 1);
  if (ok) {
    ok = members.meet();
  }
  if (ok) {
    std::memcpy(dest, all.data(), count * reduction.element);
  }
  return ok;
}

/// What members 0 to `last` give is combined by this one; zeros where that is nobody.
Result<void> combine_carried(const Members& members, const Reduction& reduction, void* dest, const void* source,
                             std::size_t count, int last) {
  alignas(64) std::array<std::byte, kMostCarried> all{};
  const std::size_t bytes = count * reduction.element;
  auto ok = exchange(members, source, bytes, [&](int member, const Carrier::Given& given) {
    if (member == 0 && last >= 0) {
      std::memcpy(all.data(), given.data, bytes);
    } else if (member <= last) {
      reduction.combine(all.data(), given.data, count);
    }
  });
  if (ok && bytes != 0) {
    std::memcpy(dest, all.data(), bytes);
  }
  return ok;
}

/// The elements that `member` combines for all. An element has 1 to 16 bytes, a power of two: none lies in two lines.
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
  if (members.span != nullptr) {
    return on_nodes::reduce(members, reduction, dest, source, count);
  }
  const std::size_t bytes = count * reduction.element;
  if (members.carries(Collective::kReduce, bytes)) {
    return combine_carried(members, reduction, dest, source, count, members.size() - 1);
  }
  if (bytes <= kSmall && !members.splits(Collective::kReduce, bytes)) {
    return reduce_small(members, reduction, dest, source, count);
  }
  if (auto ok = members.meet(); !ok) {
    return ok;
  }
  // Each combines one share of the elements and leaves it in its own dest. In place too: nobody else reads that share
  // of this member's source.
  auto* to = static_cast<std::byte*>(dest);
  const Elements mine = elements_of(members.me, members, count, reduction.element);
  auto ok = combine(members, reduction, to + mine.begin * reduction.element, source, mine.begin, mine.end,
                    members.size() - 1);
  if (ok) {
    ok = members.meet();
  }
  for (int distance = 1; ok && distance < members.size(); ++distance) {
    const int member = (members.me + distance) % members.size();
    const Elements theirs = elements_of(member, members, count, reduction.element);
    const std::size_t offset = theirs.begin * reduction.element;
    ok = members.fetch(to + offset, dest, offset, (theirs.end - theirs.begin) * reduction.element, member);
  }
  return ok ? members.meet() : ok;
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

/// In place: others read this member's source, so that what it becomes waits until they have.
Result<void> scan_in_place(const Members& members, const Reduction& reduction, std::byte* dest, std::size_t count,
                           int last) {
  alignas(64) std::array<std::byte, kPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const std::size_t most = std::max<std::size_t>(kPiece / reduction.element, 1);
  for (std::size_t i = 0; i < count; i += most) {
    const std::size_t end = std::min(count, i + most);
    auto ok = scan_piece(members, reduction, piece.data(), dest, i, end, last);
    if (ok) {
      ok = members.meet();
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
  if (members.span != nullptr) {
    return on_nodes::scan(members, reduction, dest, source, count, inclusive);
  }
  const int last = inclusive ? members.me : members.me - 1;
  if (members.carries(Collective::kScan, count * reduction.element)) {
    return combine_carried(members, reduction, dest, source, count, last);
  }
  if (auto ok = members.meet(); !ok) {
    return ok;
  }
  auto* to = static_cast<std::byte*>(dest);
  if (dest == source && count != 0) {
    return scan_in_place(members, reduction, to, count, last);
  }
  auto ok = scan_piece(members, reduction, to, source, 0, count, last);
  return ok ? members.meet() : ok;
}

}  // namespace shmem
