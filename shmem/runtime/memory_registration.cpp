// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/memory_registration.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "shmem/layout/peers.hpp"
#include "shmem/net/network.hpp"

namespace shmem {
namespace {

/// Objects with the same offset are aligned alike on all PEs up to this: as malloc aligns.
constexpr std::uint64_t kAlignment = 16;

bool overlap(std::span<const std::byte> a, const void* begin, std::size_t bytes) {
  const std::less<> before;
  const auto* b = static_cast<const std::byte*>(begin);
  return before(a.data(), b + bytes) && before(b, a.data() + a.size());
}

}  // namespace

/// A segment of the network that ends unless it is kept.
class MemoryRegistration::NewSegment {
 public:
  NewSegment() = default;
  NewSegment(Network* network, Segment segment) : network_(network), segment_(segment) {}
  NewSegment(const NewSegment&) = delete;
  NewSegment& operator=(const NewSegment&) = delete;
  NewSegment(NewSegment&& other) noexcept
      : network_(std::exchange(other.network_, nullptr)), segment_(other.segment_) {}
  NewSegment& operator=(NewSegment&& other) noexcept {
    std::swap(network_, other.network_);
    std::swap(segment_, other.segment_);
    return *this;
  }
  ~NewSegment() {
    if (network_ != nullptr) {
      network_->remove_segment(segment_);
    }
  }
  void keep() { network_ = nullptr; }

 private:
  Network* network_ = nullptr;
  Segment segment_{};
};

/// What a PE has before the others know.
struct MemoryRegistration::Own {
  std::size_t slot = 0;
  FilePart part;
  FdExchange socket;
  NewSegment segment;
  std::vector<std::byte> key;
  std::unique_ptr<Registration> registration;
};

Result<void> MemoryRegistration::check_free(std::span<const std::byte> memory) const {
  const auto pes = static_cast<std::size_t>(job_.size);
  const auto& globals = job_.globals.shared_ranges();
  const auto* areas = job_.memory.metadata(0);
  const auto* end = job_.memory.globals(0) + pes * job_.memory.globals_size();
  if (overlap(memory, job_.memory.heap(0), pes * job_.memory.heap_size()) ||
      overlap(memory, areas, static_cast<std::size_t>(end - areas)) ||
      std::any_of(globals.begin(), globals.end(),
                  [&](const GlobalRange& range) { return overlap(memory, range.begin, range.size); })) {
    return fail(std::errc::invalid_argument,
                fmt::format("{} bytes at {} are part of the symmetric heap or of global variables, which are symmetric "
                            "already",
                            memory.size(), static_cast<const void*>(memory.data())));
  }
  if (job_.registered->overlaps(memory)) {
    return fail(std::errc::file_exists, fmt::format("{} bytes at {} overlap memory that is registered; unregister that "
                                                    "before",
                                                    memory.size(), static_cast<const void*>(memory.data())));
  }
  return {};
}

Result<std::size_t> MemoryRegistration::agree_on_slot(JobMembers& members) const {
  std::array<std::uint8_t, kMostRegistered> used{};
  for (std::size_t slot = 0; slot < used.size(); ++slot) {
    used[slot] = job_.registered->at(slot) != nullptr ? 1 : 0;
  }
  const auto all = allgather(members.bootstrap, used);
  if (!all) {
    return all.error();
  }
  std::size_t slot = 0;
  while (slot < used.size() &&
         std::any_of(all->begin(), all->end(), [&](const auto& theirs) { return theirs[slot]; })) {
    ++slot;
  }
  return slot;
}

Result<MemoryRegistration::Own> MemoryRegistration::prepare(const MemoryRequest& request, std::size_t slot) const {
  if (slot == kMostRegistered) {
    return fail(std::errc::no_buffer_space,
                fmt::format("{} memories are registered, and there cannot be more; unregister some, or register one "
                            "mapping that contains several",
                            kMostRegistered));
  }
  auto part = file_of(request.memory, request.fd, request.offset);
  if (!part) {
    return part.error();
  }
  if (auto ok = check_free(request.memory); !ok) {
    return ok.error();
  }
  auto socket = FdExchange::open(job_.options.job_folder());
  if (!socket) {
    return socket.error();
  }
  Own own{slot, *std::move(part), *std::move(socket), {}, {}, std::make_unique<Registration>()};
  own.registration->mine = request.memory;
  own.registration->copies.resize(static_cast<std::size_t>(job_.size));
  own.registration->copies[static_cast<std::size_t>(job_.me)].mapped = request.memory.data();
  if (job_.network != nullptr) {
    // Others may reach it as soon as they know that all have done this.
    auto key = job_.network->add_segment(registered_segment(slot), request.memory);
    if (!key) {
      return key.error();
    }
    own.key = *std::move(key);
    own.segment = NewSegment(job_.network, registered_segment(slot));
  }
  return own;
}

/// All PEs come to the same result.
Result<void> MemoryRegistration::compare(const JobMembers& members, const std::vector<Offer>& offers) {
  const Offer& first = offers.front();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].failure.code != 0) {
      return members.failed(static_cast<int>(i), offers[i].failure);
    }
  }
  for (std::size_t i = 1; i < offers.size(); ++i) {
    const Offer& other = offers[i];
    const int pe = members.world(static_cast<int>(i));
    const int reference = members.world(0);
    if (other.bytes != first.bytes) {
      return fail(std::errc::invalid_argument,
                  fmt::format("PE {} gives {} bytes, PE {} gives {}; give the same size on "
                              "all PEs",
                              reference, first.bytes, pe, other.bytes));
    }
    if (other.address % kAlignment != first.address % kAlignment) {
      return fail(std::errc::invalid_argument,
                  fmt::format("the memory of PE {} begins {} bytes after a multiple of {}, that of PE {} {}; align it "
                              "alike on all PEs",
                              reference, first.address % kAlignment, kAlignment, pe, other.address % kAlignment));
    }
  }
  return {};
}

/// An Error also if a PE that is not awaited has died: then others may have given up before they came here.
Result<void> MemoryRegistration::watch(const JobMembers& members, const std::vector<int>& awaited,
                                       Clock::time_point deadline) const {
  if (const auto reason = job_.bootstrap->aborted()) {
    return fail(std::errc::operation_canceled, *reason);
  }
  for (int member = 0; member < members.team.size(); ++member) {
    const int pe = members.number(member);
    if (pe >= 0 && is_dead_or_zombie(job_, pe)) {
      return fail(std::errc::owner_dead, fmt::format("{} died during the call", describe_pe(job_, pe)));
    }
  }
  if (Clock::now() >= deadline) {
    return fail(std::errc::timed_out,
                fmt::format("{} did not hand over its memory in time", describe_pe(job_, awaited.front())));
  }
  return {};
}

/// PEs of this node hand each other their files, and map them.
Result<void> MemoryRegistration::map_others(JobMembers& members, Own& own, const std::vector<Offer>& offers) const {
  std::vector<std::optional<FdExchange::Peer>> peers(static_cast<std::size_t>(job_.size));
  std::vector<const Offer*> offer_of(peers.size(), nullptr);
  for (int member = 0; member < members.team.size(); ++member) {
    const int pe = members.number(member);
    if (pe < 0 || pe == job_.me) {
      continue;
    }
    const Offer& offer = offers[static_cast<std::size_t>(member)];
    peers[static_cast<std::size_t>(pe)] = FdExchange::Peer{offer.socket, offer.shared != 0};
    offer_of[static_cast<std::size_t>(pe)] = &offer;
  }
  const auto limit =
      job_.options.barrier_timeout.count() > 0 ? job_.options.barrier_timeout : job_.options.bootstrap_timeout;
  const auto deadline = Clock::now() + limit;
  auto files = own.socket.exchange(own.part.file.get(), job_.me, peers,
                                   [&](const std::vector<int>& awaited) { return watch(members, awaited, deadline); });
  if (!files) {
    return files.error();
  }
  for (std::size_t pe = 0; pe < files->size(); ++pe) {
    if (!(*files)[pe]) {
      continue;
    }
    auto window = map_window((*files)[pe].get(), offer_of[pe]->offset, own.registration->mine.size());
    if (!window) {
      return fail(window.error().code,
                  fmt::format("the memory of PE {}: {}", job_.nodes.world(static_cast<int>(pe)), window.error().text));
    }
    own.registration->copies[pe].mapped = window->data;
    own.registration->windows.push_back(std::move(window->mapping));
  }
  return {};
}

/// Notes the PEs on all nodes, and this one too: all PEs must refuse the same calls.
void MemoryRegistration::note_private(const JobMembers& members, const Own& own,
                                      const std::vector<Offer>& offers) const {
  auto& private_pes = own.registration->private_pes;
  private_pes.resize(static_cast<std::size_t>(job_.world_size()));
  for (std::size_t member = 0; member < offers.size(); ++member) {
    private_pes[static_cast<std::size_t>(members.world(static_cast<int>(member)))] = offers[member].shared == 0;
  }
}

/// After private PEs of this node let others copy their memory.
Result<void> MemoryRegistration::open_private(const JobMembers& members, Own& own,
                                              const std::vector<Offer>& offers) const {
  for (int member = 0; member < members.team.size(); ++member) {
    const Offer& offer = offers[static_cast<std::size_t>(member)];
    const int pe = members.number(member);
    if (pe < 0 || pe == job_.me || offer.shared != 0) {
      continue;
    }
    const std::string whose = fmt::format("this PE cannot copy the memory of PE {}", members.world(member));
    const auto& theirs = job_.metadata(pe);
    if (theirs.process_space.load(std::memory_order_relaxed) !=
        job_.metadata(job_.me).process_space.load(std::memory_order_relaxed)) {  // unknown: the copy below tells
      return fail(std::errc::permission_denied,
                  whose + ": its process is in another container; register a shared mapping of a memfd instead");
    }
    auto process = ProcessMemory::open(theirs.pid.load(std::memory_order_relaxed));
    if (!process) {
      return fail(process.error().code, whose + ": " + process.error().text);
    }
    std::byte copy{};
    if (const auto error = process->read(&copy, offer.address, {.block = 1}); error != std::errc{}) {
      const bool known = error == std::errc::owner_dead || error == std::errc::bad_address;
      return fail(
          known ? error : std::errc::permission_denied,
          fmt::format("{}: process_vm_readv: {}; {}", whose, std::make_error_code(error).message(), copy_advice()));
    }
    auto& mine = own.registration->copies[static_cast<std::size_t>(pe)];
    mine.process = *std::move(process);
    mine.address = offer.address;
  }
  return {};
}

/// PEs of different nodes.
Result<void> MemoryRegistration::exchange_keys(JobMembers& members, const Own& own,
                                               const std::vector<Offer>& offers) const {
  if (job_.network == nullptr) {
    return {};
  }
  std::size_t longest = 0;
  for (const Offer& offer : offers) {
    longest = std::max<std::size_t>(longest, offer.key_bytes);
  }
  std::vector<std::byte> padded = own.key;
  padded.resize(longest);
  const auto keys = longest != 0 ? members.bootstrap.allgather(padded) : Result<std::vector<std::byte>>(padded);
  if (!keys) {
    return keys.error();
  }
  std::vector<SegmentAddress> places(static_cast<std::size_t>(job_.world_size()));
  for (std::size_t member = 0; member < offers.size(); ++member) {
    const Offer& offer = offers[member];
    const auto key = std::span(*keys).subspan(member * longest).first(std::min<std::size_t>(offer.key_bytes, longest));
    places[static_cast<std::size_t>(members.world(static_cast<int>(member)))] = {
        offer.address, offer.bytes, {key.begin(), key.end()}};
  }
  job_.network->attach_segment(registered_segment(own.slot), std::move(places));
  return {};
}

void MemoryRegistration::tell_cores(std::size_t slot) const {
  if (slot >= CoreRegistered::kMost) {
    return;
  }
  CoreState& state = job_.core_state();
  CoreRegistered registered = state.registered.read();
  const Registration* added = job_.registered->at(slot);
  registered.ranges[slot] = {};
  if (added != nullptr) {
    registered.ranges[slot] = {reinterpret_cast<std::uintptr_t>(added->mine.data()), added->mine.size()};
    for (std::size_t pe = 0; pe < std::min(added->copies.size(), CoreGlobals::kMostPes); ++pe) {
      // Relaxed: the write of the range is after it.
      state.registered_places[slot][pe].store(reinterpret_cast<std::uintptr_t>(added->copies[pe].mapped),
                                              std::memory_order_relaxed);
    }
  }
  state.registered.write(registered);
}

Result<void> MemoryRegistration::add(const MemoryRequest& request) {
  JobMembers members{job_, teams_.home()};
  const auto slot = agree_on_slot(members);
  if (!slot) {
    return slot.error();
  }
  auto own = prepare(request, *slot);
  auto ok = run(members, request, own);
  if (!ok) {
    return ok;
  }
  own->segment.keep();
  job_.registered->add(*slot, std::move(own->registration));
  tell_cores(*slot);
  return {};
}

Result<void> MemoryRegistration::run(JobMembers& members, const MemoryRequest& request, Result<Own>& own) {
  Offer mine{};
  if (own) {
    mine = {.failure = {},
            .address = reinterpret_cast<std::uintptr_t>(request.memory.data()),
            .bytes = request.memory.size(),
            .offset = own->part.offset,
            .shared = own->part.file ? 1 : 0,
            .parent = ::getppid(),
            .key_bytes = static_cast<std::uint32_t>(own->key.size()),
            .socket = own->socket.address()};
  } else {
    mine.failure = report_of(own.error());
  }
  const auto offers = allgather(members.bootstrap, mine);
  if (!offers) {
    return offers.error();
  }
  if (auto ok = compare(members, *offers); !ok) {
    return ok;
  }
  const auto is_private = [](const Offer& offer) { return offer.shared == 0; };
  if (mine.shared == 0) {
    const bool one_parent =
        std::all_of(offers->begin(), offers->end(), [&](const Offer& offer) { return offer.parent == mine.parent; });
    copied_.emplace(own->slot, CopyPermission(one_parent && !job_.on_several_nodes() ? mine.parent : -1));
  }
  auto ok = members.agree(map_others(members, *own, *offers));
  if (ok && std::any_of(offers->begin(), offers->end(), is_private)) {
    note_private(members, *own, *offers);
    ok = members.agree(open_private(members, *own, *offers));
  }
  if (ok) {
    ok = exchange_keys(members, *own, *offers);
  }
  if (!ok) {
    copied_.erase(own->slot);
  }
  return ok;
}

Result<void> MemoryRegistration::remove(const void* begin) {
  JobMembers members{job_, teams_.home()};
  constexpr std::uint64_t kNone = kMostRegistered;
  const auto slot = job_.registered->slot_of(begin);
  // Also a barrier: no PE uses the memory any more.
  const auto slots = allgather(members.bootstrap, slot ? std::uint64_t{*slot} : kNone);
  if (!slots) {
    if (slot) {
      drop(*slot);
    }
    return slots.error();
  }
  // In what is left of a job, a PE may have it that others have not, since some saw the death of a PE before others.
  const bool is_reduced = teams_.home().slot() != kWorldTeam;
  for (std::size_t i = 0; i < slots->size(); ++i) {
    if ((*slots)[i] == kNone) {
      if (is_reduced && slot) {
        drop(*slot);
      }
      return fail(std::errc::invalid_argument,
                  fmt::format("PE {} has registered no memory that begins at the given address{}",
                              members.world(static_cast<int>(i)),
                              static_cast<int>(i) == members.team.me() ? fmt::format(", {}", begin) : ""));
    }
    if ((*slots)[i] != slots->front()) {
      return fail(std::errc::invalid_argument,
                  fmt::format("PE {} means other memory than PE {}; make the same calls on "
                              "all PEs",
                              members.world(static_cast<int>(i)), members.world(0)));
    }
  }
  drop(*slot);
  return {};
}

void MemoryRegistration::drop(std::size_t slot) {
  job_.registered->remove(slot);
  tell_cores(slot);
  if (job_.network != nullptr) {
    job_.network->remove_segment(registered_segment(slot));
  }
  copied_.erase(slot);
}

}  // namespace shmem
