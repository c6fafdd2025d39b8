// SPDX-License-Identifier: Apache-2.0
// Which members of a team share a port of the switch. A function has one opener: of a node with m ports PE i uses port
// i mod m, and PEs 0..m-1 have them open.
#pragma once

#include <algorithm>
#include <numeric>

#include "shmem/barrier/combine.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// Plain arithmetic, as a TeamMap is.
class PortSharing {
 public:
  /// REQUIRES: ports > 0.
  PortSharing(const TeamMap& map, int ports)
      : size_(map.size),
        stride_(ports / std::gcd(map.stride, ports)),
        openers_(std::min(size_, stride_)),
        last_opener_(std::max(map.start, map.pe(openers_ - 1))),
        complete_(last_opener_ < ports) {}

  /// Members 0..openers() - 1 are one for each port that the team has members behind.
  [[nodiscard]] int openers() const { return openers_; }
  /// They are also those who have opened these ports. If not, PE missing_opener()'s opener is not in the team.
  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] int missing_opener() const { return last_opener_; }
  /// Some port has several members.
  [[nodiscard]] bool shared() const { return openers_ < size_; }
  /// The members behind `member`'s port; the first one has opened it.
  [[nodiscard]] Group group_of(int member) const {
    const int first = member % stride_;
    return {first, stride_, (size_ - 1 - first) / stride_ + 1};
  }

 private:
  int size_;
  int stride_;
  int openers_;
  int last_opener_;
  bool complete_;
};

}  // namespace shmem
