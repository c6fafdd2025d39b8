// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/message_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "shmem/memory/scratch_buffer.hpp"

namespace shmem {
namespace {

std::vector<int> all_members(int members) {
  std::vector<int> pes(static_cast<std::size_t>(members));
  std::iota(pes.begin(), pes.end(), 0);
  return pes;
}

std::span<const std::byte> span_of(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}
std::span<std::byte> span_of(void* data, std::size_t bytes) {
  return {static_cast<std::byte*>(data), bytes};
}

bool share_bytes(std::span<const std::byte> one, std::span<const std::byte> other) {
  return !one.empty() && !other.empty() && one.data() < other.data() + other.size() &&
         other.data() < one.data() + one.size();
}

}  // namespace

MessageCollectives::MessageCollectives(Network& network, int me, int members)
    : members_(network, all_members(members), me, 1), openings_(static_cast<std::size_t>(members)) {}

bool MessageCollectives::gives(const StagedCall& call) const {
  return (call.kind != StagedCall::kBroadcast && call.kind != StagedCall::kScatter) || is_root(call);
}

/// Each member sends to each: a round trip less than a tree, and each sees for itself who is missing.
Result<void> MessageCollectives::open(const Opening& mine) {
  Given given(openings_.size(), std::as_bytes(std::span(&mine, 1)));
  Taken taken;
  for (Opening& opening : openings_) {
    taken.push_back(std::as_writable_bytes(std::span(&opening, 1)));
  }
  return members_.alltoall(given, taken);
}

Result<void> MessageCollectives::run(const StagedCall& call, std::chrono::nanoseconds timeout) {
  members_.set_limit(timeout.count() != 0 ? ProcessGroup::Limit(timeout) : std::nullopt);
  const std::string problem = problem_of(call, size());
  const std::size_t bytes = call.kind == StagedCall::kBarrier || call.kind == StagedCall::kAlltoall ? 0 : call.bytes;
  const std::size_t blocks = has_blocks(call.kind) ? static_cast<std::size_t>(size()) : 1;
  const bool in_line = bytes <= Opening::kRoom / blocks;
  Opening mine{head_of(call, problem.empty() ? 0 : CallHead::kRefused), {}};
  for (std::size_t i = 0; problem.empty() && in_line && bytes != 0 && gives(call) && i < blocks; ++i) {
    std::memcpy(mine.data.data() + i * bytes, call.from[i], bytes);
  }
  if (auto ok = open(mine); !ok) {
    return ok;
  }
  if (!problem.empty()) {
    return fail(std::errc::invalid_argument, fmt::format("shmem: PE {}: {}", members_.me(), problem));
  }
  if (auto ok = compare_heads(members_.me(), size(),
                              [this](int member) { return openings_[static_cast<std::size_t>(member)].head; });
      !ok) {
    return ok;
  }
  if (call.kind == StagedCall::kAlltoall) {
    return alltoall(call);
  }
  if (!in_line) {
    return make(call);
  }
  if (bytes != 0) {
    use_openings(call);
  }
  return {};
}

template <typename Piece>
void MessageCollectives::combine(const StagedCall& call, std::byte* to, std::size_t bytes, Piece piece_of) const {
  const TypedReduction typed = *typed_reduction(call.type, call.operation);
  const std::size_t count = bytes / typed.reduction.element;
  move_bytes(to, piece_of(0), bytes);
  for (int member = 1; member < size(); ++member) {
    typed.reduction.combine(to, piece_of(member), count);
  }
  if (typed.finish != nullptr) {
    typed.finish(to, count, size());
  }
}

/// All data has come with the exchange.
void MessageCollectives::use_openings(const StagedCall& call) const {
  const std::size_t bytes = call.bytes;
  const std::size_t mine = static_cast<std::size_t>(members_.me()) * bytes;
  const auto data = [this](int member) { return openings_[static_cast<std::size_t>(member)].data.data(); };
  switch (call.kind) {
    case StagedCall::kBroadcast:
      if (!is_root(call)) {
        move_bytes(call.to[0], data(call.root), bytes);
      }
      return;
    case StagedCall::kReduce:
    case StagedCall::kAllreduce:
      if (call.kind == StagedCall::kAllreduce || is_root(call)) {
        combine(call, static_cast<std::byte*>(call.to[0]), bytes, data);
      }
      return;
    case StagedCall::kGather:
    case StagedCall::kAllgather:
      for (int member = 0; (call.kind == StagedCall::kAllgather || is_root(call)) && member < size(); ++member) {
        move_bytes(call.to[member], data(member), bytes);
      }
      return;
    case StagedCall::kScatter:
      move_bytes(call.to[0], data(call.root) + mine, bytes);
      return;
    case StagedCall::kReduceScatter:
      combine(call, static_cast<std::byte*>(call.to[0]), bytes, [&](int member) { return data(member) + mine; });
      return;
    case StagedCall::kBarrier:
    case StagedCall::kAlltoall:
      return;
  }
}

Result<void> MessageCollectives::make(const StagedCall& call) {
  switch (call.kind) {
    case StagedCall::kBroadcast:
      return members_.broadcast(is_root(call) ? const_cast<void*>(call.from[0]) : call.to[0], call.bytes, call.root);
    case StagedCall::kReduce:
    case StagedCall::kAllreduce:
      return reduce(call);
    case StagedCall::kGather:
    case StagedCall::kAllgather:
    case StagedCall::kScatter:
      return move(call);
    case StagedCall::kReduceScatter:
      return reduce_scatter(call);
    case StagedCall::kBarrier:
    case StagedCall::kAlltoall:
      break;
  }
  return {};
}

/// Each member's data goes straight to the buffers of those who take it.
Result<void> MessageCollectives::move(const StagedCall& call) {
  Given given(openings_.size());
  Taken taken(openings_.size());
  const auto root = static_cast<std::size_t>(call.root);
  for (std::size_t i = 0; i < openings_.size(); ++i) {
    if (call.kind == StagedCall::kScatter ? is_root(call) : call.kind == StagedCall::kAllgather || i == root) {
      given[i] = span_of(call.from[call.kind == StagedCall::kScatter ? i : 0], call.bytes);
    }
    if (call.kind == StagedCall::kScatter ? i == root : call.kind == StagedCall::kAllgather || is_root(call)) {
      taken[i] = span_of(call.to[call.kind == StagedCall::kScatter ? 0 : i], call.bytes);
    }
  }
  return members_.alltoall(given, taken);
}

Result<void> MessageCollectives::reduce(const StagedCall& call) {
  const TypedReduction typed = *typed_reduction(call.type, call.operation);
  ScratchBuffer aside;
  void* to = call.kind == StagedCall::kAllreduce || is_root(call) ? call.to[0] : nullptr;
  if (to == nullptr) {
    auto scratch = ScratchBuffer::allocate(call.bytes, "in which a reduction combines the data of all ranks");
    if (!scratch) {
      return members_.give_up("reduce", scratch.error());
    }
    aside = *std::move(scratch);
    to = aside.data();
  }
  move_bytes(to, call.from[0], call.bytes);
  const std::size_t count = call.bytes / typed.reduction.element;
  if (auto ok = members_.allreduce(to, count, typed.reduction); !ok) {
    return ok;
  }
  if (typed.finish != nullptr) {
    typed.finish(to, count, size());
  }
  return {};
}

Result<void> MessageCollectives::reduce_scatter(const StagedCall& call) {
  auto scratch = ScratchBuffer::allocate(call.bytes * openings_.size(), "of a reduce_scatter between nodes");
  if (!scratch) {
    return members_.give_up("reduce_scatter", scratch.error());
  }
  Given given;
  Taken taken;
  for (std::size_t i = 0; i < openings_.size(); ++i) {
    given.push_back(span_of(call.from[i], call.bytes));
    taken.push_back({scratch->data() + i * call.bytes, call.bytes});
  }
  if (auto ok = members_.alltoall(given, taken); !ok) {
    return ok;
  }
  combine(call, static_cast<std::byte*>(call.to[0]), call.bytes,
          [&](int member) { return scratch->data() + static_cast<std::size_t>(member) * call.bytes; });
  return {};
}

Result<void> MessageCollectives::alltoall(const StagedCall& call) {
  BlockSizes sizes(call, size());
  if (auto ok = members_.allgather(std::vector<std::size_t>(openings_.size(), sizes.row_bytes()),
                                   sizes.rows_after_setting(members_.me()));
      !ok) {
    return ok;
  }
  if (auto ok = sizes.compare(members_.me()); !ok) {
    return ok;
  }
  Given given;
  Taken taken;
  bool aside = false;
  for (std::size_t i = 0; i < openings_.size(); ++i) {
    given.push_back(span_of(call.from[i], call.from_bytes[i]));
    taken.push_back(span_of(call.to[i], call.to_bytes[i]));
  }
  for (const auto& from : given) {
    aside = aside || std::any_of(taken.begin(), taken.end(), [&](const auto& to) { return share_bytes(from, to); });
  }
  ScratchBuffer copy;
  if (aside) {
    auto scratch = ScratchBuffer::allocate(std::accumulate(call.from_bytes, call.from_bytes + size(), std::size_t{0}),
                                           "of an alltoall in place");
    if (!scratch) {
      return members_.give_up("alltoall", scratch.error());
    }
    copy = *std::move(scratch);
    std::byte* at = copy.data();
    for (auto& from : given) {
      move_bytes(at, from.data(), from.size());
      from = {at, from.size()};
      at += from.size();
    }
  }
  return members_.alltoall(given, taken);
}

}  // namespace shmem
