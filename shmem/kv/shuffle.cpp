// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/shuffle.hpp"

#include <functional>
#include <new>

namespace shmem::kv {
namespace {

tl::unexpected<Error> invalid(std::string what) {
  return fail(std::errc::invalid_argument, std::move(what));
}

std::string message(std::errc error) {
  switch (error) {
    case std::errc::timed_out:
      return "it did not come in time (SHMEM_BARRIER_TIMEOUT)";
    case std::errc::owner_dead:
      return "its process has died";
    case std::errc::operation_canceled:
      return "the job was ended";
    default:
      return std::make_error_code(error).message();
  }
}

/// What can be wrong with the arguments without knowing the caches' places.
Result<CacheSize> check_arguments(const Call& call, Role role) {
  if (call.k == nullptr || call.v == nullptr) {
    return invalid(call.k == nullptr ? "k_cache is NULL" : "v_cache is NULL");
  }
  auto size = cache_size(call.shape);
  // A receiver's block tables are ignored, as a plan may hold some for it that came to nothing.
  if (!size || role != Role::kSender) {
    return size;
  }
  if (call.block_count < 0) {
    return invalid("block_count is " + std::to_string(call.block_count));
  }
  if (call.block_count > 0 && (call.source == nullptr || call.destination == nullptr)) {
    return invalid(std::string(call.source == nullptr ? "src_block_table" : "dst_block_table") + " is NULL, but " +
                   std::to_string(call.block_count) + " blocks are to be sent");
  }
  return size;
}

Moves moves_of(const Call& call, Role role) {
  if (role != Role::kSender || call.block_count == 0) {
    return {};
  }
  const auto count = static_cast<std::size_t>(call.block_count);
  return {{call.source, count}, {call.destination, count}};
}

bool overlap(const std::byte* a, const std::byte* b, std::size_t bytes) {
  const std::less<> before;
  return before(a, b + bytes) && before(b, a + bytes);
}

}  // namespace

Result<void> KvShuffle::check_cores(int cores) {
  if (cores < 2 || cores % 2 != 0) {
    return invalid("kv_shuffle: cannot use " + std::to_string(cores) +
                   " cores: half of them copy K and half V, so their number is even and positive");
  }
  return {};
}

Result<std::unique_ptr<KvShuffle>> KvShuffle::create(Site site, int cores, SyncWord* flags) {
  if (auto ok = check_cores(cores); !ok) {
    return tl::make_unexpected(ok.error());
  }
  auto group = CoreGroup::create(cores, site.policy);
  if (!group) {
    return tl::make_unexpected(group.error());
  }
  return std::unique_ptr<KvShuffle>{new KvShuffle{std::move(site), *std::move(group), flags}};
}

Result<PeMemory> KvShuffle::memory_of(const Call& call, std::size_t bytes, int pe) const {
  for (const std::byte* cache : {call.k, call.v}) {
    const std::byte* first = site_.translate(cache, pe);
    const std::byte* last = site_.translate(cache + (bytes - 1), pe);
    if (first == nullptr || last == nullptr || last - first != static_cast<std::ptrdiff_t>(bytes - 1)) {
      return invalid(std::string(cache == call.k ? "k_cache" : "v_cache") + " of " + std::to_string(bytes) +
                     " bytes is not in symmetric memory (allocate it with shmem_malloc)");
    }
  }
  return PeMemory{site_.translate(call.k, pe), site_.translate(call.v, pe),
                  reinterpret_cast<SyncWord*>(site_.translate(flags_, pe))};
}

Result<Shuffle> KvShuffle::prepare(const Call& call, const PairTable& table) const {
  if (auto ok = table.check(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const Role role = table.role(site_.me);
  const auto size = check_arguments(call, role);
  if (!size) {
    return tl::make_unexpected(size.error());
  }
  const int partner = static_cast<int>(table.peer(site_.me));
  const auto mine = memory_of(call, size->bytes(), site_.me);
  const auto theirs = memory_of(call, size->bytes(), partner);
  if (!mine || !theirs) {
    return tl::make_unexpected(mine ? theirs.error() : mine.error());
  }
  if (overlap(call.k, call.v, size->bytes())) {
    return invalid("k_cache and v_cache, " + std::to_string(size->bytes()) + " bytes each, overlap");
  }
  const Moves moves = moves_of(call, role);
  if (auto ok = check_moves(moves, size->blocks); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return Shuffle{role, site_.me, partner, cores_->count(), *mine, *theirs, size->block_bytes, moves, count_};
}

void KvShuffle::tell_partner(const PairTable& table, std::errc error) const {
  const std::int64_t peer = table.peer(site_.me);
  if (!table.in_range(peer) || peer == site_.me) {
    return;
  }
  auto* flags = reinterpret_cast<SyncWord*>(site_.translate(flags_, static_cast<int>(peer)));
  const int parts = cores_->count();
  for (int part = 0; part < parts; ++part) {
    publish(flag_of({nullptr, nullptr, flags}, site_.me, part, parts), flag_value(count_, error));
  }
}

Result<void> KvShuffle::run(const Call& call) {
  ++count_;  // also when the call fails: the partner's does, and the next ones must meet again
  if (call.pair_table == nullptr) {
    return fail(std::errc::invalid_argument, name_call() + "global_shuffle_table is NULL");
  }
  const PairTable table{call.pair_table, site_.pes};
  try {
    const auto prepared = prepare(call, table);
    if (prepared) {
      const Report report = shuffle(*prepared);
      return report.stage == Report::Stage::kDone ? Result<void>{} : explain(*prepared, report);
    }
    // The partner may not see what is wrong; if he does, he does not look at this.
    tell_partner(table, prepared.error().code);
    return fail(prepared.error().code, name_call() + prepared.error().text);
  } catch (const std::bad_alloc&) {
    tell_partner(table, std::errc::not_enough_memory);
    throw;
  }
}

/// The calling thread does all the waiting; the others are woken when there is something to copy.
Report KvShuffle::shuffle(const Shuffle& shuffle) {
  if (shuffle.role == Role::kIdle) {
    return {};
  }
  CoreGroup::Check watch = site_.watch(shuffle.partner);
  SoloCore caller{site_.policy, watch};
  if (shuffle.role == Role::kSender) {
    return send(caller, shuffle);
  }
  say_all(caller, shuffle, std::errc{});
  return hear_all(caller, shuffle);
}

Report KvShuffle::send(SoloCore<CoreGroup::Check>& caller, const Shuffle& shuffle) {
  const Report report = hear_all(caller, shuffle);
  if (report.stage != Report::Stage::kDone) {
    say_all(caller, shuffle, report.error);
    return report;
  }
  cores_->run([&shuffle](ThreadCore& core) {
    copy_part(shuffle, core.index());
    say(core, shuffle, core.index(), std::errc{});
    return std::errc{};
  });
  return {};
}

std::string KvShuffle::name_call() const {
  return "kv_shuffle: PE " + std::to_string(site_.me) + ", call " + std::to_string(count_) + ": ";
}

tl::unexpected<Error> KvShuffle::explain(const Shuffle& shuffle, const Report& report) const {
  const bool sends = shuffle.role == Role::kSender;
  const std::string partner = "PE " + std::to_string(shuffle.partner);
  const std::string text = name_call() + (sends ? "sending " : "receiving ") +
                           (sends ? std::to_string(shuffle.moves.source.size()) + " blocks to " : "from ") + partner +
                           ": ";
  switch (report.stage) {
    case Report::Stage::kPartnerFailed:
      return fail(std::errc::connection_aborted,
                  text + partner + " gave up: " + message(report.error) + " (its own message says why)");
    case Report::Stage::kOutOfStep:
      return fail(report.error, text + partner + " has gone on to a later call: all PEs make the same calls");
    case Report::Stage::kWaiting:
    case Report::Stage::kDone:
      break;
  }
  return fail(report.error,
              text + "waited for " + partner + (sends ? " to be ready; " : "'s blocks; ") + message(report.error));
}

}  // namespace shmem::kv
