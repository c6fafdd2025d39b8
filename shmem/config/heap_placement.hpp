// SPDX-License-Identifier: Apache-2.0
// The requested and the actual placement of the symmetric heaps.
#pragma once

#include <string>

namespace shmem {

/// The pages to try, in this order. kAuto, kHugetlb: kHugetlb, kThp, kBase. kThp: kThp, kBase. kNone: kBase.
enum class HugePages { kAuto, kHugetlb, kThp, kNone };

/// kThp: the kernel supports transparent huge pages and was asked for them; if it finds none it uses small pages.
enum class PageKind { kBase, kThp, kHugetlb };

enum class NumaPolicy { kLocal, kInterleave, kNone };

struct PlacementRequest {
  HugePages pages = HugePages::kAuto;
  NumaPolicy numa = NumaPolicy::kLocal;
  /// Where the PEs hand each other the memory, in all namespaces of the machine; "": in their network namespace.
  std::string folder{};
};

struct Placement {
  PageKind pages = PageKind::kBase;
  std::string numa;         // of this PE's heap: "local (node 1)", "interleave (nodes 0, 1)", "none"
  std::string numa_reason;  // why it differs from the request, or ""
};

}  // namespace shmem
