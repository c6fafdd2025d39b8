// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/member_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <optional>

#include "base/memfd.hpp"
#include "base/size_text.hpp"
#include "shmem/bootstrap/agreement.hpp"
#include "shmem/memory/fd_passing.hpp"
#include "shmem/memory/memory_limit.hpp"
#include "shmem/memory/node_memory.hpp"
#include "shmem/memory/pages.hpp"

namespace shmem {
namespace {

struct Offered {
  HeapFile file;
  FdServer server;
};

/// What member 0 does before the others ask.
Result<Offered> offer_file(std::size_t bytes, std::size_t total, const PlacementRequest& request) {
  const MemoryLimit limit = memory_limit();
  if (bytes > limit.bytes) {
    return fail(std::errc::not_enough_memory,
                fmt::format("{} of symmetric memory is more than the {}, {}; ask for less", base::size_text(bytes),
                            limit.source, base::rounded_size_text(limit.bytes)));
  }
  auto file = create_heap_file(total, request.pages);
  if (!file) {
    return file.error();
  }
  auto server = FdServer::open(request.folder);
  if (!server) {
    return server.error();
  }
  return Offered{*std::move(file), *std::move(server)};
}

/// Where the others find member 0.
struct FileAddress {
  base::RandomName name;
  PageKind pages;
};

/// Collective: the file, on all members.
Result<HeapFile> share_file(Bootstrap& members, std::size_t bytes, std::size_t total, const PlacementRequest& request,
                            std::chrono::milliseconds limit) {
  const bool leads = members.rank() == 0;
  std::optional<Result<Offered>> offered;
  std::optional<Result<FdClient>> client;
  if (leads) {
    offered = offer_file(bytes, total, request);
  } else {
    client = FdClient::open(request.folder);
  }
  if (auto ok = leads ? agree(members, *offered) : agree(members, *client); !ok) {
    return ok.error();
  }
  const auto addresses =
      allgather(members, leads ? FileAddress{(**offered).server.name(), (**offered).file.pages} : FileAddress{});
  if (!addresses) {
    return addresses.error();
  }
  if (leads) {
    Offered& mine = **offered;
    const std::array files{mine.file.file.get()};
    if (auto ok = mine.server.serve(files, members.size(), std::chrono::steady_clock::now() + limit, members); !ok) {
      return ok.error();
    }
    return std::move(mine.file);
  }
  auto files = (**client).fetch(addresses->front().name, members.rank(), limit, members);
  if (!files) {
    return files.error();
  }
  return HeapFile{std::move(files->front()), addresses->front().pages, ""};
}

Result<base::Mapping> map_file(const Result<HeapFile>& file, std::size_t total) {
  if (!file) {
    return file.error();
  }
  if (auto sound = base::check_memfd(file->file.get(), total); !sound) {
    return sound.error();
  }
  if (auto room = check_address_space(total + kHeapAlignment); !room) {
    return room.error();
  }
  return base::Mapping::share(file->file.get(), total, kHeapAlignment);
}

}  // namespace

MemberMemory::MemberMemory(base::Mapping mapping, std::size_t size, std::size_t stride, const Bootstrap& members)
    : mapping_(std::move(mapping)),
      size_(size),
      stride_(stride),
      me_(members.rank()),
      members_(members.size()),
      owner_(::getpid()) {}

Result<std::shared_ptr<MemberMemory>> MemberMemory::create(Bootstrap& members, std::size_t bytes,
                                                           PlacementRequest request, std::chrono::milliseconds limit) {
  const auto sizes = allgather(members, std::uint64_t{bytes});
  if (!sizes) {
    return sizes.error();
  }
  for (std::size_t pe = 0; pe < sizes->size(); ++pe) {
    if ((*sizes)[pe] != sizes->front()) {
      return fail(std::errc::invalid_argument,
                  fmt::format("shmem: PE {}: PE 0 asks for {} bytes of symmetric memory, PE {} for {}", members.rank(),
                              sizes->front(), pe, (*sizes)[pe]));
    }
  }
  const auto count = static_cast<std::size_t>(members.size());
  if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max() / 4 / count) {
    return fail(std::errc::not_enough_memory,
                fmt::format("shmem: there cannot be {} bytes of symmetric memory for each of {}", bytes,
                            base::count(count, "PE")));
  }
  const std::size_t stride = (bytes + kHeapAlignment - 1) / kHeapAlignment * kHeapAlignment;
  const std::size_t total = kHeader + stride * count;
  if (request.pages == HugePages::kAuto || request.pages == HugePages::kHugetlb) {
    request.pages = HugePages::kThp;
  }
  auto file = share_file(members, bytes, total, request, limit);
  auto mapping = map_file(file, total);
  std::shared_ptr<MemberMemory> memory;
  if (mapping) {
    memory.reset(new MemberMemory(*std::move(mapping), bytes, stride, members));
    // Before any member touches its part, which the last step is for.
    place(memory->mine(), stride, request.numa, system_numa());
    if (file->pages == PageKind::kThp) {
      advise_huge_pages(memory->part(0), stride * count);
    }
    memory->holders().fetch_add(1, std::memory_order_relaxed);
  }
  if (auto ok = agree(members, mapping); !ok) {
    return ok.error();
  }
  return memory;
}

void MemberMemory::release() {
  if (owner_ != ::getpid()) {
    return;
  }
  ::madvise(mine(), stride_, MADV_REMOVE);  // without it, the pages go with the last mapping
  // Release: pairs with is_unused().
  holders().fetch_sub(1, std::memory_order_release);
}

}  // namespace shmem
