// SPDX-License-Identifier: Apache-2.0
// What the memory of the symmetric heaps may be asked to be, and what it is.
#pragma once

#include <string>

namespace shmem {

/// Which pages to take: kAuto and kHugetlb try the three kinds of PageKind one after the other, from the last; kThp
/// leaves out the first try, kNone the second too.
enum class HugePages { kAuto, kHugetlb, kThp, kNone };

/// kThp: the kernel was asked for transparent huge pages and is willing; where it finds none it takes small ones.
enum class PageKind { kBase, kThp, kHugetlb };

enum class NumaPolicy { kLocal, kInterleave, kNone };

struct PlacementRequest {
  HugePages pages = HugePages::kAuto;
  NumaPolicy numa = NumaPolicy::kLocal;
};

struct Placement {
  PageKind pages = PageKind::kBase;
  std::string numa;         // of this PE's heap: "local (node 1)", "interleave (nodes 0, 1)", "none"
  std::string numa_reason;  // why it is not what was asked for, or ""
};

}  // namespace shmem
