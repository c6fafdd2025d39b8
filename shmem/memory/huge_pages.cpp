// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/huge_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "shmem/memory/memfd.hpp"
#include "shmem/memory/size_text.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace shmem {

namespace {

constexpr const char* kName = "shmem-heaps";

std::string error_text(int error) {
  return std::generic_category().message(error);
}

/// The chosen one of "always within_size [advise] never"; "" if there is no such file.
std::string chosen_in(const std::string& file) {
  std::ifstream stream(file);
  for (std::string word; stream >> word;) {
    if (word.front() == '[') return word.substr(1, word.find(']') - 1);
  }
  return "";
}

std::string free_huge_pages() {
  std::ifstream stream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  std::string count = "0";
  stream >> count;
  return count;
}

/// A file whose pages are set aside for it, or why there is none.
Result<UniqueFd> create_hugetlb_file(std::size_t size) {
  auto file = create_memfd(kName, size, MemfdPages::kHuge);
  if (!file) return file;
  // The mapping makes the reservation, which is the file's and stays when the mapping goes.
  void* reserved = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  if (reserved == MAP_FAILED) {
    const int error = errno;
    return fail(std::errc{error}, std::to_string(size / kHugePageSize) + " pages of " + size_text(kHugePageSize) +
                                      " are needed and " + free_huge_pages() +
                                      " are free (sysctl vm.nr_hugepages): " + error_text(error));
  }
  ::munmap(reserved, size);
  return file;
}

}  // namespace

std::string thp_obstacle(const std::string& thp_folder) {
  const std::string all = thp_folder + "/shmem_enabled";
  const std::string these = thp_folder + "/hugepages-" + std::to_string(kHugePageSize >> 10) + "kB/shmem_enabled";
  const std::string general = chosen_in(all);
  if (general.empty()) return "this kernel has none for shared memory";
  // The size's own setting counts, where it does not point to the general one; but "deny" and "force" are for all.
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
    if (file) return HeapFile{std::move(*file), PageKind::kHugetlb, ""};
    reason = "hugetlb: " + file.error().text;
  }
  auto file = create_memfd(kName, size);
  if (!file) return tl::make_unexpected(file.error());
  if (wanted == HugePages::kNone) return HeapFile{std::move(*file), PageKind::kBase, "SHMEM_HUGEPAGES=none"};
  const std::string obstacle = thp_obstacle(thp_folder);
  if (obstacle.empty()) return HeapFile{std::move(*file), PageKind::kThp, reason};
  return HeapFile{std::move(*file), PageKind::kBase, reason + (reason.empty() ? "" : "; ") + "thp: " + obstacle};
}

void advise_huge_pages(std::byte* start, std::size_t size) {
  ::madvise(start, size, MADV_HUGEPAGE);
}

Result<void> populate(std::byte* start, std::size_t size) {
  int result = 0;
  do {
    result = ::madvise(start, size, MADV_POPULATE_WRITE);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  return fail_errno(errno, "cannot touch " + size_text(size) + " of huge pages (is a control group in the way?)");
}

std::string to_string(PageKind pages) {
  switch (pages) {
    case PageKind::kBase:
      return size_text(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    case PageKind::kThp:
      return "thp";
    case PageKind::kHugetlb:
      return "hugetlb";
  }
  return "";
}

}  // namespace shmem
