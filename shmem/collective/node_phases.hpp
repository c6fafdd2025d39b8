// SPDX-License-Identifier: Apache-2.0
// The members of a team on one node, before and after what the first of them does for all.
#pragma once

#include <cstdint>

#include "shmem/collective/carrier.hpp"
#include "shmem/team/span.hpp"

namespace shmem {

/// One member's side, for a call or part of one. All members on the node make the same calls in the same order.
class NodePhases {
 public:
  /// `carrier` is that of the `size` members on this node.
  NodePhases(const Job& job, Span& span, Carrier& carrier, int size)
      : job_(job), span_(span), carrier_(carrier), size_(size) {}

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool leads() const { return span_.leads(); }

  /// All have come, each with a number: the first waits for that, and what they stored before is visible to it;
  /// use(member on this node, number). The others do not wait.
  template <typename Use>
  Result<void> gather(std::uint64_t mine, Use use) {
    if (leads()) use(0, mine);
    if (size_ == 1) return {};
    if (auto ok = carrier_.begin(); !ok) return ok;
    if (!leads()) {
      if (auto ok = carrier_.give(&mine, sizeof mine); !ok) return ok;
    }
    for (int member = 1; leads() && member < size_; ++member) {
      const auto theirs = carrier_.take(member);
      if (!theirs) return tl::make_unexpected(theirs.error());
      use(member, number_of(*theirs));
    }
    carrier_.end(leads());
    return {};
  }
  Result<void> gather() {
    return gather(0, [](int, std::uint64_t) {});
  }

  /// The first says what came of its work, with a number; the others wait for that, and see what it stored before.
  Result<std::uint64_t> release(const Result<void>& done, std::uint64_t number = 0);

  /// A sync of the node's members, where each says what came of its work: if that was nothing for one, then for all.
  Result<void> meet(const Result<void>& mine = {});

  /// A sync of the node's members: between its halves the first does `work`.
  template <typename Work>
  Result<void> around(Work work) {
    if (auto ok = gather(); !ok) return ok;
    const auto over = release(leads() ? work() : Result<void>{});
    return over ? Result<void>{} : tl::make_unexpected(over.error());
  }

 private:
  static std::uint64_t number_of(const Carrier::Given& given);

  const Job& job_;
  Span& span_;
  Carrier& carrier_;
  int size_;
};

}  // namespace shmem
