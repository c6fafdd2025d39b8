// SPDX-License-Identifier: Apache-2.0
// Which members of a team share a port of the switch. A function has one opener: on a node with m ports, PE i uses port
// i mod m, and PEs 0..m-1 have the ports open.
#pragma once

#include <algorithm>
#include <numeric>

#include "shmem/barrier/algorithms.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// Plain arithmetic, like TeamMap. The members of a list each need a port of their own.
class PortSharing {
 public:
  /// REQUIRES: ports > 0.
  PortSharing(const TeamMap& map, int ports)
      : size_(map.size),
        stride_(map.is_list() ? map.size : ports / std::gcd(map.stride, ports)),
        openers_(std::min(size_, stride_)),
        last_opener_(last_opener(map, openers_)),
        complete_(last_opener_ < ports) {}

  /// The number of ports that the team uses. Members 0..openers() - 1 use one port each.
  [[nodiscard]] int openers() const { return openers_; }
  /// These members have also opened the ports. If not, the opener of PE missing_opener()'s port is not in the team.
  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] int missing_opener() const { return last_opener_; }
  /// Several members use one port.
  [[nodiscard]] bool shared() const { return openers_ < size_; }
  /// The members behind `member`'s port; the first one has opened it.
  [[nodiscard]] MemberGroup group_of(int member) const {
    const int first = member % stride_;
    return {first, stride_, (size_ - 1 - first) / stride_ + 1};
  }

 private:
  static int last_opener(const TeamMap& map, int openers) {
    int last = std::max(map.start, map.pe(openers - 1));
    for (int i = 0; map.is_list() && i < openers; ++i) {
      last = std::max(last, map.pe(i));
    }
    return last;
  }

  int size_;
  int stride_;
  int openers_;
  int last_opener_;
  bool complete_;
};

}  // namespace shmem
