// SPDX-License-Identifier: Apache-2.0
// A PE that is killed while it shuffles, or one that must get an error and keep blocks that the plan does not write.
//
//   kv_pes killed copy|move|cycle|pairs|phases VICTIM PERMILLE [private|mixed]
//
// VICTIM dies after PERMILLE thousandths of the time that the same shuffle took before, with 0 before it begins. With
// a fourth argument caches are in registered memory, which is private to the processes of all PEs, or of every second
// one.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "tests/integration/kv/kv_objects.hpp"
#include "tests/integration/kv/kv_pes.hpp"
#include "tests/integration/shmem/registered_memory.hpp"

namespace kv_killed {
namespace {

using Clock = std::chrono::steady_clock;
using kv_model::Moves;
using kv_model::Slot;
using kv_test::give_up;

constexpr kv_model::Shape kShape{SHMEMX_KV_BY_LAYER, 2, 4, 32, 4, 64, 128};  // 64 KiB a block, 16 MiB in all
constexpr std::int64_t kMoved = 16;                                          // blocks that each PE sends

/// The initial value of word `index` of a block.
std::uint64_t word(const Slot& slot, std::int64_t part, std::size_t index) {
  return static_cast<std::uint64_t>((slot.pe * 64 + part) * 64 + slot.block + 1) * 0x9e3779b97f4a7c15U + index;
}

struct Sight {
  std::string kind;
  int victim;
  std::byte* memory;
  int me = shmem_my_pe(), pes = shmem_n_pes();
  long* heap = static_cast<long*>(shmem_calloc(1, sizeof(long)));

  [[nodiscard]] std::uint64_t* words(std::int64_t part, const Slot& slot) const {
    const auto place = kv_model::place_of(kShape, part / 2, static_cast<int>(part % 2), slot.block);
    return reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(shmem_ptr(memory, static_cast<int>(slot.pe))) +
                                            place.offset);
  }
  template <typename Function>
  static void each_word(const Function& function) {
    for (std::int64_t part = 0; part < 2 * kShape.layers; ++part) {
      for (std::size_t i = 0; i < kShape.block_bytes() / sizeof(std::uint64_t); ++i) {
        function(part, i);
      }
    }
  }
  void fill() const {
    for (std::int64_t block = 0; block < kShape.blocks; ++block) {
      const Slot mine{me, block};
      each_word([&](std::int64_t part, std::size_t i) { words(part, mine)[i] = word(mine, part, i); });
    }
  }
  /// True if a block holds the initial contents of `origin`.
  [[nodiscard]] bool holds(const Slot& slot, const Slot& origin) const {
    bool same = true;
    each_word([&](std::int64_t part, std::size_t i) { same = same && words(part, slot)[i] == word(origin, part, i); });
    return same;
  }
  [[nodiscard]] bool is_zero(const Slot& slot) const {
    bool zero = true;
    each_word([&](std::int64_t part, std::size_t i) { zero = zero && words(part, slot)[i] == 0; });
    return zero;
  }

  [[nodiscard]] bool can_read(int pe) const { return shmem_ptr(memory, pe) != nullptr; }
  [[nodiscard]] bool on_several_nodes() const {
    for (int pe = 0; pe < pes; ++pe) {
      if (shmem_ptr(heap, pe) == nullptr) {
        return true;
      }
    }
    return false;
  }
  /// Between nodes the message may name another PE, the leader of the victim's node or of this one.
  [[nodiscard]] bool names_victim(const std::string& text) const {
    return text.find("PE " + std::to_string(victim)) != std::string::npos || on_several_nodes();
  }

  [[nodiscard]] int mode() const { return kind == "move" ? SHMEMX_KV_MOVE : SHMEMX_KV_COPY; }
  [[nodiscard]] Moves moves() const {
    Moves all;
    for (int pe = 0; pe < pes; pe += kind == "pairs" ? 2 : 1) {
      const int next = (pe + 1) % pes;
      for (std::int64_t block = 0; block < kMoved; ++block) {
        all.push_back({{pe, block}, {next, kind == "cycle" ? block : block + kMoved}});
      }
    }
    return all;
  }
  [[nodiscard]] kv_test::Plan plan() const {
    if (kind != "pairs") {
      kv_model::Random random{1};
      return kv_test::make_plan(kv_model::as_given(random, moves()), mode());
    }
    kv_model::PairPlan pairs{std::vector<std::int64_t>(static_cast<std::size_t>(2 * pes)),
                             std::vector<Moves>(static_cast<std::size_t>(pes))};
    for (int pe = 0; pe < pes; ++pe) {
      std::int64_t* row = &pairs.table[2 * static_cast<std::size_t>(pe)];
      row[0] = pe ^ 1;
      row[1] = pe % 2;
    }
    for (const auto& move : moves()) {
      pairs.sent[static_cast<std::size_t>(move.from.pe)].push_back(move);
    }
    return kv_test::make_pairs(pairs, me);
  }
  [[nodiscard]] shmemx_kv_cache_t cache() const { return kv_test::describe(kShape, memory, nullptr); }
};

/// Expects the blocks of `pe` that the plan does not write to be unchanged; if `finished`, all blocks to be as planned.
void check_blocks(const Sight& sight, int pe, bool finished) {
  const Moves moves = sight.moves();
  for (std::int64_t block = 0; block < kShape.blocks; ++block) {
    const Slot slot{pe, block};
    const auto to = std::ranges::find(moves, slot, &kv_model::Move::to);
    const bool cleared = sight.mode() == SHMEMX_KV_MOVE && to == moves.end() &&
                         std::ranges::find(moves, slot, &kv_model::Move::from) != moves.end();
    if (!finished && (to != moves.end() || cleared)) {
      continue;
    }
    if (!(cleared ? sight.is_zero(slot) : sight.holds(slot, to == moves.end() ? slot : to->from))) {
      give_up(
          "block " + std::to_string(block) + " of PE " + std::to_string(pe) +
          (finished ? " is wrong after a shuffle without an error" : ", which the plan does not write, has changed"));
    }
  }
}

[[noreturn]] void die(const Sight& sight, shmemx_kv_op_t* op, const kv_test::Plan& plan, Clock::duration after) {
  const auto cache = sight.cache();
  if (after == Clock::duration::zero()) {  // not by a thread, which may run after the shuffle
    ::kill(::getpid(), SIGKILL);
  }
  std::thread killer([after] {
    std::this_thread::sleep_for(after);
    ::kill(::getpid(), SIGKILL);
  });
  if (sight.kind == "phases") {
    shmemx_kv_shuffle_start(op, plan.get(), &cache);
  } else {
    shmemx_kv_shuffle(op, plan.get(), &cache);
  }
  killer.join();
  std::abort();
}

int shuffle(const Sight& sight, shmemx_kv_op_t* op, const kv_test::Plan& plan) {
  const auto cache = sight.cache();
  if (sight.kind != "phases") {
    return shmemx_kv_shuffle(op, plan.get(), &cache);
  }
  const int error = shmemx_kv_shuffle_start(op, plan.get(), &cache);
  return error != 0 ? error : shmemx_kv_shuffle_wait(op);
}

void survive(const Sight& sight, shmemx_kv_op_t* op, const kv_test::Plan& plan) {
  const int error = shuffle(sight, op, plan);
  const std::string text = error != 0 ? shmemx_error_text() : "";
  std::printf("PE %d: %d %s\n", sight.me, error, text.c_str());
  if (error != 0 && !sight.names_victim(text)) {
    give_up("the message does not name the PE that died");
  }
  check_blocks(sight, sight.me, error == 0);
  // A shuffle without an error is complete on all PEs, also on the one that was killed after it.
  if (error == 0 && sight.kind != "pairs" && sight.can_read(sight.victim)) {
    check_blocks(sight, sight.victim, true);
  }
  const int again = shuffle(sight, op, plan);
  if (again == 0 && (sight.kind != "pairs" || sight.me == (sight.victim ^ 1))) {
    give_up("a shuffle without the victim succeeded");
  }
  std::printf("PE %d: survives, %d\n", sight.me, shmemx_kv_op_destroy(op));
  std::fflush(stdout);
}

}  // namespace

int run(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    return 2;
  }
  shmem_init();
  std::optional<registered::Memory> own;
  if (argc == 5) {
    using Kind = registered::Memory::Kind;
    own.emplace(argv[4] == std::string("private") || shmem_my_pe() % 2 == 1 ? Kind::kPrivate : Kind::kGiven,
                kShape.bytes());
    if (own->add() != 0) {
      give_up(shmemx_error_text());
    }
  }
  const Sight sight{argv[1], std::stoi(argv[2]),
                    own ? own->at<std::byte>() : static_cast<std::byte*>(shmem_malloc(kShape.bytes()))};
  shmemx_kv_options_t options{};
  options.staging_bytes = 1 << 18;  // so that a cycle takes many rounds
  shmemx_kv_op_t* op = nullptr;
  if (shmemx_kv_op_create(SHMEM_TEAM_WORLD, &options, &op) != 0) {
    give_up(shmemx_error_text());
  }
  const auto plan = sight.plan();
  sight.fill();
  Clock::duration took{};
  for (int i = 0; i < 2; ++i) {  // the first touches the memory
    const auto begin = Clock::now();
    if (shuffle(sight, op, plan) != 0) {
      give_up(shmemx_error_text());
    }
    took = Clock::now() - begin;
  }
  shmem_barrier_all();
  sight.fill();
  shmem_barrier_all();
  if (sight.me == sight.victim) {
    // All have left the barrier, in which the end of this PE would end them.
    shmem_long_wait_until(sight.heap, SHMEM_CMP_GE, sight.pes - 1);
    die(sight, op, plan, took * std::stoi(argv[3]) / 1000);
  }
  shmem_long_atomic_inc(sight.heap, sight.victim);
  survive(sight, op, plan);
  shmem_finalize();
  return 0;
}

}  // namespace kv_killed
