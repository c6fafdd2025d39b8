// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kv/played_team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/unit/kv/played_pes.hpp"

namespace kv_test {
namespace {

using shmem::Result;

shmem::Error lost(int pe) {
  return shmem::fail(std::errc::connection_reset, fmt::format("PE {} is lost", pe));
}

shmem::kv::OperatorTeam::Facts facts_of(const PlayedPes& pes, int me) {
  return {
      .me = me,
      .size = pes.pes(),
      .size_on_node = pes.pes_a_node() == 0 ? std::numeric_limits<int>::max() : std::min(pes.pes_a_node(), pes.pes()),
      .spans_nodes = pes.pes_a_node() != 0};
}

}  // namespace

PlayedTeam::PlayedTeam(PlayedPes& pes, int me) : OperatorTeam(facts_of(pes, me)), pes_(pes) {}

std::byte* PlayedTeam::at(const void* mine, std::size_t bytes, int pe) const {
  const std::size_t begin = offset(mine);
  return begin < pes_.part_bytes() && bytes <= pes_.part_bytes() - begin ? pes_.k(pe) + begin : nullptr;
}

bool PlayedTeam::is_on_other_node(int pe) const {
  return pe / pes_.pes_a_node() != me() / pes_.pes_a_node();
}

std::byte* PlayedTeam::translate(const void* mine, int pe) const {
  return is_remote(pe) || is_private(mine, pe) ? nullptr : at(mine, 1, pe);
}

bool PlayedTeam::is_in_caches(const void* mine) const {
  return offset(mine) < 2 * pes_.buffer_bytes();
}

bool PlayedTeam::is_mapped(const void* mine) const {
  return pes_.private_caches.pes.empty() || !is_in_caches(mine);
}

bool PlayedTeam::is_private(const void* mine, int pe) const {
  return pe != me() && !is_remote(pe) && is_in_caches(mine) && pes_.private_caches.pes.count(pe) != 0;
}

Result<void> PlayedTeam::write_private(int pe, std::span<const Piece> pieces) {
  PlayedPrivate& caches = pes_.private_caches;
  ++caches.calls;
  caches.pieces += pieces.size();
  if (pieces.empty() || pieces.size() > kMostPieces) {
    return shmem::fail(std::errc::argument_list_too_long, fmt::format("{} pieces in a call", pieces.size()));
  }
  if (const auto error = caches.failure ? caches.failure(me(), pe) : std::errc{}; error != std::errc{}) {
    return shmem::fail(error, fmt::format("no copies to PE {}", pe));
  }
  for (const Piece& piece : pieces) {
    std::memcpy(at(piece.to, piece.size, pe), piece.from, piece.size);
  }
  return {};
}

bool PlayedTeam::is_symmetric(const std::byte* mine, std::size_t bytes) const {
  return at(mine, bytes, me()) != nullptr;
}

std::uint64_t PlayedTeam::offset(const void* mine) const {
  return reinterpret_cast<std::uintptr_t>(mine) - reinterpret_cast<std::uintptr_t>(pes_.k(me()));
}

shmem::CoreGroup::Check PlayedTeam::watch(int /*partner*/) const {
  if (!pes_.why_ended.empty()) {
    return [] { return std::errc::operation_canceled; };
  }
  const auto end = shmem::Clock::now() + pes_.time_limit;
  return [end] { return shmem::Clock::now() < end ? std::errc{} : std::errc::timed_out; };
}

std::string PlayedTeam::why_ended() const {
  return pes_.why_ended;
}

Result<void> PlayedTeam::sync() {
  auto met = pes_.sync();
  if (pes_.after_sync) {
    pes_.after_sync(me());
  }
  return met;
}

bool PlayedTeam::has_remote(const void* mine, std::size_t bytes, int pe) const {
  return at(mine, bytes, pe) != nullptr;
}

PlayedTraffic::Loss PlayedTeam::loss_to(int pe) const {
  return pes_.traffic.loss ? pes_.traffic.loss(me(), pe) : PlayedTraffic::Loss::kNone;
}

void PlayedTeam::note_word() {
  if (!under_way_.empty()) {
    pes_.traffic.told_early = true;
  }
}

Result<void> PlayedTeam::start_put(void* mine, int pe, const void* from, std::size_t bytes) {
  if (loss_to(pe) == PlayedTraffic::Loss::kAtPut) {
    return lost(pe);
  }
  under_way_.push_back({pe, at(mine, bytes, pe), from, bytes});
  ++pes_.traffic.puts;
  std::size_t most = pes_.traffic.most_at_once;
  while (most < under_way_.size() && !pes_.traffic.most_at_once.compare_exchange_weak(most, under_way_.size())) {
  }
  return {};
}

Result<void> PlayedTeam::start_store(const shmem::SyncWord& mine, int pe, std::uint64_t value) {
  note_word();
  shmem::publish(word(mine, pe), value);
  return {};
}

Result<void> PlayedTeam::get(void* to, const void* mine, int pe, std::size_t bytes) {
  std::memcpy(to, at(mine, bytes, pe), bytes);
  return {};
}

Result<std::uint64_t> PlayedTeam::load(const shmem::SyncWord& mine, int pe) {
  return word(mine, pe).value.load();
}

Result<void> PlayedTeam::fence() {
  Result<void> outcome;
  for (; !under_way_.empty(); under_way_.pop_back()) {
    const Put& put = under_way_.back();
    if (loss_to(put.pe) == PlayedTraffic::Loss::kNone) {
      std::memcpy(put.to, put.from, put.bytes);
    } else {
      outcome = lost(put.pe);
    }
  }
  return outcome;
}

Result<PlayedTeam::Vote> PlayedTeam::vote(std::uint64_t digest, bool willing) {
  note_word();
  return pes_.vote(me(), digest, willing);
}

}  // namespace kv_test
