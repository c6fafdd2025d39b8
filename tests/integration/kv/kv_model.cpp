// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/kv/kv_model.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace kv_model {
namespace {

/// Accepts moves that do not conflict with those that it has.
class Collector {
 public:
  Collector(Random& random, int pes, std::int64_t blocks, int mode)
      : random_(random), pes_(pes), blocks_(blocks), mode_(mode) {}

  void add_some() {
    switch (random_.below(9)) {
      case 0:
        return between_two(random_slot().pe, random_slot().pe);
      case 1:
        return many_to_one();
      case 2:
        return one_to_many();
      case 3:
        return chain(random_.one_in(2));
      case 4:
        return whole_caches();
      case 5:
        return within_a_pe();
      case 6:
        return run();
      case 7:
        return anything();
      default: {
        const Slot slot = random_slot();
        return add(slot, slot);
      }
    }
  }

  Moves moves;

 private:
  Slot random_slot() { return {random_.below(pes_), random_.below(blocks_)}; }
  std::int64_t some_blocks() { return random_.between(1, blocks_); }

  void add(const Slot& from, const Slot& to) {
    if (received_.contains(to) || (mode_ == SHMEMX_KV_MOVE && sent_.contains(from))) {
      return;
    }
    received_.insert(to);
    sent_.insert(from);
    moves.push_back({from, to});
  }
  void between_two(std::int64_t a, std::int64_t b) {
    for (std::int64_t i = some_blocks(); i > 0; --i) {
      add({a, random_.below(blocks_)}, {b, random_.below(blocks_)});
    }
  }
  void many_to_one() {
    const std::int64_t receiver = random_slot().pe;
    for (std::int64_t i = some_blocks(); i > 0; --i) {
      add(random_slot(), {receiver, random_.below(blocks_)});
    }
  }
  void one_to_many() {
    const Slot from = random_slot();
    for (std::int64_t i = random_.between(2, std::int64_t{2} * pes_); i > 0; --i) {
      add(mode_ == SHMEMX_KV_MOVE ? Slot{from.pe, random_.below(blocks_)} : from, random_slot());
    }
  }
  void chain(bool closed) {
    std::vector<Slot> slots;
    for (std::int64_t i = random_.between(2, std::int64_t{2} * pes_ + 2); i > 0; --i) {
      slots.push_back(random_slot());
    }
    for (std::size_t i = 1; i < slots.size(); ++i) {
      add(slots[i - 1], slots[i]);
    }
    if (closed) {
      add(slots.back(), slots.front());
    }
  }
  void whole_caches() {
    std::vector<std::int64_t> ring(static_cast<std::size_t>(pes_));
    for (std::size_t i = 0; i < ring.size(); ++i) {
      ring[i] = static_cast<std::int64_t>(i);
    }
    random_.shuffle(ring);
    ring.resize(static_cast<std::size_t>(random_.between(std::min(2, pes_), pes_)));
    for (std::size_t i = 0; i < ring.size(); ++i) {
      for (std::int64_t block = 0; block < blocks_; ++block) {
        add({ring[i], block}, {ring[(i + 1) % ring.size()], block});
      }
    }
  }
  void within_a_pe() {
    std::vector<std::int64_t> to(static_cast<std::size_t>(blocks_));
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<std::int64_t>(i);
    }
    random_.shuffle(to);
    const std::int64_t pe = random_slot().pe;
    for (std::int64_t i = some_blocks() - 1; i >= 0; --i) {
      add({pe, i}, {pe, to[static_cast<std::size_t>(i)]});
    }
  }
  /// Moves a run of consecutive blocks to consecutive blocks, which may overlap on the same PE.
  void run() {
    const std::int64_t length = some_blocks();
    const Slot from{random_slot().pe, random_.between(0, blocks_ - length)};
    const Slot to{random_.one_in(3) ? from.pe : random_slot().pe, random_.between(0, blocks_ - length)};
    for (std::int64_t i = 0; i < length; ++i) {
      add({from.pe, from.block + i}, {to.pe, to.block + i});
    }
  }
  void anything() {
    for (std::int64_t i = random_.between(1, pes_ * blocks_); i > 0; --i) {
      add(random_slot(), random_slot());
    }
  }

  Random& random_;
  int pes_;
  std::int64_t blocks_;
  int mode_;
  std::set<Slot> sent_, received_;
};

void fill(Random& random, std::vector<std::byte>& bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(&bytes[i], &word, std::min(sizeof word, bytes.size() - i));
  }
}

}  // namespace

Moves random_moves(Random& random, int pes, std::int64_t blocks, int mode) {
  Collector collector(random, pes, blocks, mode);
  if (random.one_in(20)) {
    return {};
  }
  for (std::int64_t i = random.one_in(2) ? 1 : random.between(2, 6); i > 0; --i) {
    collector.add_some();
  }
  return collector.moves;
}

std::vector<shmemx_kv_move_t> as_given(Random& random, const Moves& moves) {
  std::vector<shmemx_kv_move_t> given;
  for (const Move& move : moves) {
    for (int times = random.one_in(8) ? 2 : 1; times > 0; --times) {
      given.push_back({move.from.pe, move.from.block, move.to.pe, move.to.block});
    }
  }
  random.shuffle(given);
  return given;
}

Moves PairPlan::all() const {
  Moves moves;
  for (const Moves& of_one : sent) {
    moves.insert(moves.end(), of_one.begin(), of_one.end());
  }
  return moves;
}

PairPlan random_pairs(Random& random, int pes, std::int64_t blocks) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(pes));
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<std::int64_t>(i);
  }
  random.shuffle(order);
  PairPlan plan{std::vector<std::int64_t>(2 * order.size()), std::vector<Moves>(order.size())};
  for (std::size_t i = 0; i < order.size(); i += 2) {
    const std::int64_t a = order[i];
    const std::int64_t b = order[std::min(i + 1, order.size() - 1)];
    const bool sends = a != b && !random.one_in(5);
    const auto row = [&](std::int64_t pe) { return &plan.table[2 * static_cast<std::size_t>(pe)]; };
    row(a)[0] = b;
    row(a)[1] = sends ? 0 : random.between(1, 3);
    row(b)[0] = a;
    row(b)[1] = random.between(1, 3);
    for (std::int64_t block = 0; sends && block < blocks; ++block) {
      if (random.one_in(2)) {
        plan.sent[static_cast<std::size_t>(a)].push_back({{a, random.below(blocks)}, {b, block}});
      }
    }
    random.shuffle(plan.sent[static_cast<std::size_t>(a)]);
  }
  return plan;
}

std::string Shape::text() const {
  return "format " + std::to_string(format) + ", " + std::to_string(layers) + " layers of " + std::to_string(blocks) +
         " blocks of " + std::to_string(heads) + "x" + std::to_string(page) + "x" + std::to_string(dim) + "x" +
         std::to_string(element_size) + " bytes";
}

Shape random_shape(Random& random, std::size_t most_bytes) {
  Shape shape{static_cast<int>(random.below(5)),
              1 << random.below(4),
              random.between(1, 5),
              random.between(1, 24),
              random.between(1, 5),
              random.between(1, 9),
              random.between(1, 40)};
  if (random.one_in(3)) {  // as models have them
    shape.heads = 1 << random.below(4);
    shape.page = 1 << random.below(5);
    shape.dim = 16 << random.below(4);
  } else if (random.one_in(4)) {
    shape.heads = 3;
    shape.page = 5;
    shape.dim = 7;
  }
  // Larger blocks if there is room.
  for (int i = 0; i < 6 && 4 * shape.bytes() < most_bytes; ++i) {
    shape.page *= 2;
  }
  while (shape.bytes() > most_bytes) {
    std::int64_t& largest = std::max({std::ref(shape.blocks), std::ref(shape.page), std::ref(shape.dim)},
                                     [](std::int64_t a, std::int64_t b) { return a < b; });
    largest = (largest + 1) / 2;
  }
  return shape;
}

Place place_of(const Shape& shape, std::int64_t layer, int side, std::int64_t block) {
  std::int64_t number = 0;  // of the block, in memory
  switch (shape.format) {
    case SHMEMX_KV_APART:
    case SHMEMX_KV_LATENT:
      number = layer * shape.blocks + block;
      break;
    case SHMEMX_KV_BY_LAYER:
      number = (layer * 2 + side) * shape.blocks + block;
      break;
    case SHMEMX_KV_INTERLEAVED:
      number = (layer * shape.blocks + block) * 2 + side;
      break;
    case SHMEMX_KV_BY_BLOCK:
      number = (block * shape.layers + layer) * 2 + side;
      break;
    default:
      break;
  }
  return {shape.format == SHMEMX_KV_APART && side == 1, static_cast<std::size_t>(number) * shape.block_bytes()};
}

Caches::Caches(Random& random, int pes, const Shape& shape)
    : shape_(shape),
      blocks_(static_cast<std::size_t>(pes * shape.layers * shape.sides() * shape.blocks), Block(shape.block_bytes())) {
  for (Block& block : blocks_) {
    fill(random, block);
  }
}

void Caches::apply(const Moves& moves, int mode) {
  const std::vector<Block> before = blocks_;
  std::set<Slot> received;
  for (const Move& move : moves) {
    received.insert(move.to);
  }
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    for (int side = 0; side < shape_.sides(); ++side) {
      for (const auto& [from, to] : moves) {
        blocks_[index(to.pe, layer, side, to.block)] = before[index(from.pe, layer, side, from.block)];
        if (mode == SHMEMX_KV_MOVE && !received.contains(from)) {
          std::ranges::fill(blocks_[index(from.pe, layer, side, from.block)], std::byte{0});
        }
      }
    }
  }
}

void Caches::change(const Slot& slot) {
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    for (int side = 0; side < shape_.sides(); ++side) {
      for (std::byte& byte : blocks_[index(slot.pe, layer, side, slot.block)]) {
        byte ^= std::byte{0xa5};
      }
    }
  }
}

}  // namespace kv_model
