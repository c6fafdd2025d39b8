// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/node_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memfd.hpp"
#include "base/size_text.hpp"
#include "shmem/bootstrap/agreement.hpp"
#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/memory/fd_passing.hpp"
#include "shmem/memory/memory_limit.hpp"
#include "shmem/memory/pages.hpp"

namespace shmem {

namespace {

constexpr int kLeader = 0;

std::string heap_text(std::size_t size) {
  return "a symmetric heap of " + base::size_text(size);
}

/// "PEs 0, 2-3 ask for 1 GiB, PE 1 for 2 MiB".
std::string requests_text(const std::vector<std::uint64_t>& sizes) {
  std::map<std::uint64_t, std::vector<int>> askers;
  for (std::size_t pe = 0; pe < sizes.size(); ++pe) {
    askers[sizes[pe]].push_back(static_cast<int>(pe));
  }
  std::string text;
  for (const auto& [size, pes] : askers) {
    text += (text.empty() ? "" : ", ") + pe_list(pes) + (pes.size() == 1 ? " asks for " : " ask for ") +
            base::size_text(static_cast<std::size_t>(size));
  }
  return text;
}

/// Collective: an Error on all PEs unless all ask for the same.
Result<void> check_equal(Bootstrap& bootstrap, std::size_t heap_size) {
  const auto sizes = allgather(bootstrap.everybody(), std::uint64_t{heap_size});
  if (!sizes) {
    return sizes.error();
  }
  if (std::all_of(sizes->begin(), sizes->end(), [&](std::uint64_t size) { return size == heap_size; })) {
    return {};
  }
  return fail(std::errc::invalid_argument,
              fmt::format("shmem: the PEs ask for symmetric heaps of different sizes: {}; give all of them the same "
                          "SHMEM_SYMMETRIC_SIZE",
                          requests_text(*sizes)));
}

/// The sizes of each PE's parts of the memory.
struct Shares {
  std::size_t heap_size;
  std::size_t globals_size;
};

/// The memfd is sparse, so the heaps together may be larger than the memory, but one heap may not.
Result<void> check_size(const Shares& shares, int pes) {
  const std::size_t heap_size = shares.heap_size;
  if (heap_size == 0) {
    return fail(std::errc::invalid_argument,
                "a symmetric heap needs more than 0 bytes; set SHMEM_SYMMETRIC_SIZE to a larger size");
  }
  const MemoryLimit limit = memory_limit();
  if (heap_size > limit.bytes) {
    return fail(std::errc::not_enough_memory, heap_text(heap_size) + " is more than the " + limit.source + ", " +
                                                  base::rounded_size_text(limit.bytes) +
                                                  "; set SHMEM_SYMMETRIC_SIZE to less");
  }
  const std::size_t most = std::numeric_limits<std::size_t>::max() / 2 / static_cast<std::size_t>(pes);
  if (heap_size + kHeapAlignment + kMetadataSize + kBoardShare + shares.globals_size > most) {
    return fail(std::errc::not_enough_memory,
                fmt::format("{} for each of {} is more than can be addressed; set SHMEM_SYMMETRIC_SIZE to less",
                            heap_text(heap_size), base::count(pes, "PE")));
  }
  return {};
}

std::size_t round_up(std::size_t size) {
  return (size + kHeapAlignment - 1) & ~(kHeapAlignment - 1);
}

std::size_t heaps_size(const Shares& shares, int pes) {
  return round_up(shares.heap_size) * static_cast<std::size_t>(pes);
}

std::size_t areas_size(const Shares& shares, int pes) {
  return (kMetadataSize + kBoardShare + shares.globals_size) * static_cast<std::size_t>(pes);
}

Error about_heap(Error error, std::size_t heap_size, int pes) {
  error.text = fmt::format("{} for each of {}: {} (SHMEM_SYMMETRIC_SIZE sets the size)", heap_text(heap_size),
                           base::count(pes, "PE"), error.text);
  return error;
}

/// Held by the leader while the other PEs fetch the files.
struct Stock {
  NodeFds files;
  PageKind pages;
  std::string pages_reason;
  FdServer server;
};

Result<Stock> make_stock(const Shares& shares, int pes, const PlacementRequest& request) {
  if (auto fits = check_size(shares, pes); !fits) {
    return fits.error();
  }
  auto heaps = create_heap_file(heaps_size(shares, pes), request.pages);
  if (!heaps) {
    return about_heap(heaps.error(), shares.heap_size, pes);
  }
  auto areas = base::create_memfd("shmem-areas", areas_size(shares, pes));
  if (!areas) {
    return areas.error();
  }
  auto server = FdServer::open(request.folder);
  if (!server) {
    return server.error();
  }
  return Stock{NodeFds{std::move(heaps->file), std::move(*areas)}, heaps->pages, std::move(heaps->reason),
               std::move(*server)};
}

/// A PE's final mappings.
struct Mapped {
  base::Mapping heaps;
  base::Mapping areas;
  NodeFds files;
  Placement placement;
};

Result<base::Mapping> map_heaps(int file, const Shares& shares, int me, int pes) {
  const std::size_t size = heaps_size(shares, pes);
  if (auto sound = base::check_memfd(file, size); !sound) {
    return sound.error();
  }
  const std::size_t heap_size = round_up(shares.heap_size);
  const std::size_t alignment = std::bit_floor(heap_size);
  if (auto room = check_address_space(size + alignment + areas_size(shares, pes) + kHeapAlignment); !room) {
    return about_heap(room.error(), shares.heap_size, pes);
  }
  auto heaps = base::Mapping::share(file, size, alignment, heap_size * static_cast<std::size_t>(me));
  if (!heaps) {
    return about_heap(heaps.error(), shares.heap_size, pes);
  }
  return heaps;
}

Result<base::Mapping> map_areas(int file, const Shares& shares, int pes) {
  const std::size_t size = areas_size(shares, pes);
  if (auto sound = base::check_memfd(file, size); !sound) {
    return sound.error();
  }
  return base::Mapping::share(file, size, kHeapAlignment);
}

/// A byte of the heaps' file for each PE, locked while its process lives. The lock is the process's: neither a forked
/// child has it nor those that share the open file, and it ends with the first descriptor of the file that is closed.
struct flock life_of(int pe) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = pe;
  lock.l_len = 1;
  return lock;
}

std::byte* heap_of(const Mapped& mapped, const Shares& shares, int pe) {
  return mapped.heaps.data() + round_up(shares.heap_size) * static_cast<std::size_t>(pe);
}

/// `pages` are those of the leader's file.
Result<Mapped> map_files(NodeFds files, const Shares& shares, const Bootstrap& bootstrap, PageKind pages,
                         const PlacementRequest& request) {
  auto heaps = map_heaps(files.heaps.get(), shares, bootstrap.rank(), bootstrap.size());
  if (!heaps) {
    return heaps.error();
  }
  auto areas = map_areas(files.areas.get(), shares, bootstrap.size());
  if (!areas) {
    return areas.error();
  }
  Mapped mapped{std::move(*heaps), std::move(*areas), std::move(files), {}};
  // Before any PE touches the heaps.
  NumaPlacement numa =
      place(heap_of(mapped, shares, bootstrap.rank()), round_up(shares.heap_size), request.numa, system_numa());
  if (pages == PageKind::kThp) {
    advise_huge_pages(mapped.heaps.data(), mapped.heaps.size());
  }
  mapped.placement = {pages, std::move(numa.text), std::move(numa.reason)};
  if (!request.folder.empty()) {
    struct flock life = life_of(bootstrap.rank());
    if (::fcntl(mapped.files.heaps.get(), F_SETLK, &life) != 0) {
      return fail_errno(errno, "cannot lock this PE's byte of the heaps' file, by which the others see that it lives");
    }
  }
  return mapped;
}

/// Sent by the leader to the other PEs.
struct Offer {
  base::RandomName name;
  PageKind pages;
};

/// Collective. Only the leader's `mine` matters.
Result<Offer> broadcast(Bootstrap& bootstrap, const Offer& mine) {
  const auto all = allgather(bootstrap, mine);
  return all ? Result<Offer>((*all)[kLeader]) : all.error();
}

/// Where the leader writes why the pages of the heaps are not larger: the end of its metadata area.
std::span<char> notes_in(const base::Mapping& areas) {
  return {reinterpret_cast<char*>(areas.data() + kMetadataSize - kNotesSize), kNotesSize};
}

/// The leader's part: broadcast, hand out, map.
Result<Mapped> lead(Bootstrap& bootstrap, const Shares& shares, const PlacementRequest& request,
                    const std::string& refused, std::chrono::milliseconds limit) {
  auto stock = make_stock(shares, bootstrap.size(), request);
  if (auto ready = agree(bootstrap, stock); !ready) {
    return ready.error();
  }
  if (auto offer = broadcast(bootstrap, {stock->server.name(), stock->pages}); !offer) {
    return offer.error();
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const std::array files{stock->files.heaps.get(), stock->files.areas.get()};
  auto served = stock->server.serve(files, bootstrap.size(), deadline, bootstrap);
  if (!served) {
    return served.error();
  }
  auto mapped = map_files(std::move(stock->files), shares, bootstrap, stock->pages, request);
  if (mapped) {
    const std::string between = refused.empty() || stock->pages_reason.empty() ? "" : "; ";
    (refused + between + stock->pages_reason).copy(notes_in(mapped->areas).data(), kNotesSize - 1);
  }
  return mapped;
}

/// The part of the other PEs: receive, fetch, map.
Result<Mapped> follow(Bootstrap& bootstrap, const Shares& shares, const PlacementRequest& request,
                      std::chrono::milliseconds limit) {
  auto client = FdClient::open(request.folder);
  if (auto ready = agree(bootstrap, client); !ready) {
    return ready.error();
  }
  const auto offer = broadcast(bootstrap, {});
  if (!offer) {
    return offer.error();
  }

  auto files = client->fetch(offer->name, bootstrap.rank(), limit, bootstrap);
  if (!files) {
    return files.error();
  }
  if (files->size() != 2) {
    return fail(std::errc::bad_message, fmt::format("PE 0 gave {} file descriptors, not 2", files->size()));
  }
  return map_files(NodeFds{std::move((*files)[0]), std::move((*files)[1])}, shares, bootstrap, offer->pages, request);
}

/// Collective: whether any PE has pages of the pool. The PEs of one node agree.
Result<bool> any_from_pool(Bootstrap& bootstrap, const Mapped& mapped) {
  const bool mine = mapped.placement.pages == PageKind::kHugetlb;
  if (&bootstrap.everybody() == &bootstrap) {
    return mine;
  }
  const auto all = allgather(bootstrap.everybody(), std::uint8_t{mine ? std::uint8_t{1} : std::uint8_t{0}});
  if (!all) {
    return all.error();
  }
  return std::find(all->begin(), all->end(), 1) != all->end();
}

/// Collective: with pages of the pool, touches this PE's heap. "", or which PE failed and why.
Result<std::string> populate_all(Bootstrap& bootstrap, const Mapped& mapped, const Shares& shares) {
  const auto mine = mapped.placement.pages == PageKind::kHugetlb
                        ? populate(heap_of(mapped, shares, bootstrap.rank()), round_up(shares.heap_size))
                        : Result<void>{};
  const auto missing = first_of(bootstrap.everybody(), mine ? std::nullopt : std::optional(report_of(mine.error())));
  if (!missing) {
    return missing.error();
  }
  if (!*missing) {
    return std::string();
  }
  return fmt::format("hugetlb: PE {}: {}", (*missing)->pe, (*missing)->what.text.data());
}

/// Gives an error of this PE the same form as one reported by another PE.
Error with_prefix(Error error, int me) {
  constexpr const char* kPrefix = "shmem: ";
  if (error.text.rfind(kPrefix, 0) != 0) {
    error.text.insert(0, fmt::format("{}PE {}: ", kPrefix, me));
  }
  return error;
}

}  // namespace

NodeMemory::NodeMemory(base::Mapping heaps, base::Mapping areas, NodeFds files, Placement placement,
                       std::size_t heap_size, std::size_t globals_size, int pes, bool has_locks)
    : has_locks_(has_locks),
      heaps_(std::move(heaps)),
      areas_(std::move(areas)),
      files_(std::move(files)),
      placement_(std::move(placement)),
      heap_size_(heap_size),
      globals_size_(globals_size),
      pes_(pes) {}

Result<NodeMemory> NodeMemory::create(Bootstrap& bootstrap, std::size_t heap_size, std::size_t globals_size,
                                      PlacementRequest request, std::chrono::milliseconds limit) {
  const Shares shares{heap_size, globals_size};
  if (auto equal = check_equal(bootstrap, heap_size); !equal) {
    return equal.error();
  }
  std::string refused;  // why pages of the pool could not be used although there were some
  for (;;) {
    auto mapped = bootstrap.rank() == kLeader ? lead(bootstrap, shares, request, refused, limit)
                                              : follow(bootstrap, shares, request, limit);
    if (auto agreed = agree(bootstrap, mapped); !agreed) {
      return with_prefix(mapped ? agreed.error() : mapped.error(), bootstrap.everybody().rank());
    }
    const auto from_pool = any_from_pool(bootstrap, *mapped);
    if (!from_pool) {
      return from_pool.error();
    }
    if (*from_pool) {
      auto missing = populate_all(bootstrap, *mapped, shares);
      if (!missing) {
        return missing.error();
      }
      if (!missing->empty()) {
        refused = *std::move(missing);
        request.pages = HugePages::kThp;
        continue;
      }
    }
    return NodeMemory(std::move(mapped->heaps), std::move(mapped->areas), std::move(mapped->files),
                      std::move(mapped->placement), round_up(heap_size), globals_size, bootstrap.size(),
                      !request.folder.empty());
  }
}

Result<NodeMemory> NodeMemory::take_over(const Bootstrap& bootstrap, NodeFds files, std::size_t heap_size,
                                         std::size_t globals_size, const PlacementRequest& request) {
  auto mapped = map_files(std::move(files), {heap_size, globals_size}, bootstrap, PageKind::kBase, request);
  if (!mapped) {
    return with_prefix(mapped.error(), bootstrap.rank());
  }
  NodeMemory memory(std::move(mapped->heaps), std::move(mapped->areas), std::move(mapped->files),
                    std::move(mapped->placement), round_up(heap_size), globals_size, bootstrap.size(),
                    !request.folder.empty());
  if (auto ok = memory.clear_parts_of(bootstrap.rank()); !ok) {
    return with_prefix(ok.error(), bootstrap.rank());
  }
  return memory;
}

Result<void> NodeMemory::clear_parts_of(int pe) const {
  const auto clear = [](int file, std::size_t offset, std::size_t size) {
    return ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(size)) == 0;
  };
  const auto number = static_cast<std::size_t>(pe);
  // The notes are the leader's for all.
  if (clear(files_.heaps.get(), number * heap_size_, heap_size_) &&
      clear(files_.areas.get(), number * kMetadataSize, kMetadataSize - kNotesSize)) {
    return {};
  }
  return fail_errno(errno, "cannot clear the memory of the process that has died: fallocate");
}

bool NodeMemory::has_died(int pe) const {
  struct flock life = life_of(pe);
  return has_locks_ && ::fcntl(files_.heaps.get(), F_GETLK, &life) == 0 && life.l_type == F_UNLCK;
}

void NodeMemory::drop_files() {
  if (!has_locks_) {
    files_.heaps.reset();
  }
  if (globals_size_ == 0) {
    files_.areas.reset();
  }
}

std::string NodeMemory::pages_reason() const {
  return notes_in(areas_).data();
}

}  // namespace shmem
