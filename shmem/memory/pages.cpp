// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/pages.hpp"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/memfd.hpp"
#include "base/size_text.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace shmem {

namespace {

/// By system calls: libnuma, which has them, reads many files when it is loaded, in each PE.
class SystemNuma final : public Numa {
 public:
  [[nodiscard]] std::vector<int> nodes() const override {
    std::vector<int> allowed;
    Mask mask{};
    // Also where the kernel has no NUMA, or a container refuses the call.
    if (::syscall(SYS_get_mempolicy, nullptr, mask.data(), kMaskBits, nullptr, MPOL_F_MEMS_ALLOWED) != 0) {
      return allowed;
    }
    for (int node = 0; node < kMostNodes; ++node) {
      const auto bit = static_cast<std::size_t>(node);
      if ((mask[bit / kWordBits] >> (bit % kWordBits) & 1) != 0) {
        allowed.push_back(node);
      }
    }
    return allowed;
  }

  [[nodiscard]] int my_node() const override {
    unsigned cpu = 0;
    unsigned node = 0;
    return ::getcpu(&cpu, &node) == 0 ? static_cast<int>(node) : -1;
  }

  int bind(std::byte* start, std::size_t size, int mode, const std::vector<int>& nodes) override {
    Mask mask{};
    for (const int node : nodes) {
      const auto bit = static_cast<std::size_t>(node);
      mask.at(bit / kWordBits) |= 1UL << (bit % kWordBits);
    }
    return ::syscall(SYS_mbind, start, size, mode, mask.data(), kMaskBits, 0) == 0 ? 0 : errno;
  }

 private:
  /// The most that Linux can be built for.
  static constexpr int kMostNodes = 1024;
  static constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);
  using Mask = std::array<unsigned long, kMostNodes / kWordBits>;
  static constexpr unsigned long kMaskBits = kMostNodes + 1;  // the kernel excludes the last
};

std::string list(const std::vector<int>& nodes) {
  std::string text = nodes.size() == 1 ? " (node " : " (nodes ";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", nodes[i]);
  }
  return text + ")";
}

}  // namespace

Numa& system_numa() {
  static SystemNuma numa;
  return numa;
}

NumaPlacement place(std::byte* heap, std::size_t size, NumaPolicy policy, Numa& numa) {
  if (policy == NumaPolicy::kNone) {
    return {"none", "SHMEM_NUMA=none"};
  }
  std::vector<int> nodes = numa.nodes();
  if (nodes.empty()) {
    return {"none", "this system knows no NUMA nodes"};
  }
  const bool local = policy == NumaPolicy::kLocal;
  if (local) {
    const int mine = numa.my_node();
    if (std::find(nodes.begin(), nodes.end(), mine) == nodes.end()) {
      return {"none", fmt::format("this PE's node, {}, has no memory for it", mine)};
    }
    nodes = {mine};
  }
  // Preferred, not bound: a bound mapping of huge pages raises SIGBUS if its node has none left.
  if (const int error = numa.bind(heap, size, local ? MPOL_PREFERRED : MPOL_INTERLEAVE, nodes); error != 0) {
    return {"none", "mbind: " + std::generic_category().message(error)};
  }
  return {(local ? "local" : "interleave") + list(nodes), ""};
}

namespace {

constexpr const char* kName = "shmem-heaps";

std::string error_text(int error) {
  return std::generic_category().message(error);
}

/// The chosen one of "always within_size [advise] never"; "" if there is no such file.
std::string chosen_in(const std::string& file) {
  std::ifstream stream(file);
  for (std::string word; stream >> word;) {
    if (word.front() == '[') {
      return word.substr(1, word.find(']') - 1);
    }
  }
  return "";
}

std::string free_huge_pages() {
  std::ifstream stream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  std::string count = "0";
  stream >> count;
  return count;
}

/// A file with reserved pages, or why there is none.
Result<base::UniqueFd> create_hugetlb_file(std::size_t size) {
  auto file = base::create_memfd(kName, size, base::MemfdPages::kHuge);
  if (!file) {
    return file;
  }
  // The mapping makes the reservation, which belongs to the file and stays when the mapping goes.
  void* reserved = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  if (reserved == MAP_FAILED) {
    const int error = errno;
    return fail(std::errc{error}, fmt::format("{} pages of {} are needed and {} are free (sysctl vm.nr_hugepages): {}",
                                              size / base::kHugePageSize, base::size_text(base::kHugePageSize),
                                              free_huge_pages(), error_text(error)));
  }
  ::munmap(reserved, size);
  return file;
}

}  // namespace

std::string thp_obstacle(const std::string& thp_folder) {
  const std::string all = thp_folder + "/shmem_enabled";
  const std::string these = fmt::format("{}/hugepages-{}kB/shmem_enabled", thp_folder, base::kHugePageSize >> 10);
  const std::string general = chosen_in(all);
  if (general.empty()) {
    return "this kernel has none for shared memory";
  }
  // The size's own setting counts unless it refers to the general one; but "deny" and "force" override both.
  std::string file = these;
  std::string setting = chosen_in(these);
  if (setting.empty() || setting == "inherit" || general == "deny" || general == "force") {
    file = all;
    setting = general;
  }
  return setting == "never" || setting == "deny" ? file + " is \"" + setting + "\" (\"advise\" allows them)" : "";
}

Result<HeapFile> create_heap_file(std::size_t size, HugePages wanted, const std::string& thp_folder) {
  std::string reason;
  if (wanted == HugePages::kAuto || wanted == HugePages::kHugetlb) {
    auto file = create_hugetlb_file(size);
    if (file) {
      return HeapFile{std::move(*file), PageKind::kHugetlb, ""};
    }
    reason = "hugetlb: " + file.error().text;
  }
  auto file = base::create_memfd(kName, size);
  if (!file) {
    return file.error();
  }
  if (wanted == HugePages::kNone) {
    return HeapFile{std::move(*file), PageKind::kBase, "SHMEM_HUGEPAGES=none"};
  }
  const std::string obstacle = thp_obstacle(thp_folder);
  if (obstacle.empty()) {
    return HeapFile{std::move(*file), PageKind::kThp, reason};
  }
  return HeapFile{std::move(*file), PageKind::kBase, reason + (reason.empty() ? "" : "; ") + "thp: " + obstacle};
}

void advise_huge_pages(std::byte* start, std::size_t size) {
  ::madvise(start, size, MADV_HUGEPAGE);
}

Result<void> populate(std::byte* start, std::size_t size) {
  const int result = base::retry([&] { return ::madvise(start, size, MADV_POPULATE_WRITE); });
  if (result == 0) {
    return {};
  }
  return fail_errno(errno, "cannot touch " + base::size_text(size) + " of huge pages (is a control group in the way?)");
}

std::string to_string(PageKind pages) {
  switch (pages) {
    case PageKind::kBase:
      return base::size_text(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    case PageKind::kThp:
      return "thp";
    case PageKind::kHugetlb:
      return "hugetlb";
  }
  return "";
}

}  // namespace shmem
