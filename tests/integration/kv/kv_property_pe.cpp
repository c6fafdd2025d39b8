// SPDX-License-Identifier: Apache-2.0
// Random shuffles, each compared with the model: every byte of every cache and of the memory around them.
//
//   kv_pes property SEED CASES BYTES [private|mixed]
//
// BYTES: about what the caches of all PEs take together. With a fourth argument they are in registered memory, which is
// private to the processes of all PEs, or of every second one.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "tests/integration/kv/kv_objects.hpp"
#include "tests/integration/kv/kv_pes.hpp"
#include "tests/integration/shmem/registered_memory.hpp"

namespace kv_property {
namespace {

using kv_model::Caches;
using kv_model::Moves;
using kv_model::PairPlan;
using kv_model::Random;
using kv_model::Slot;
using kv_test::Arena;
using kv_test::give_up;
using kv_test::Plan;

std::string g_where;  // NOLINT: of this program's only thread, for messages

void check(int error, const char* doing) {
  if (error != 0) {
    give_up(g_where + ": " + doing + ": " + std::to_string(error) + " " + shmemx_error_text());
  }
}

/// Global variables are symmetric too: half of the cases have their caches here, if they fit.
std::array<std::byte, 1 << 18> g_memory;  // NOLINT: symmetric memory

/// A team of PEs first, first + stride, ..., and their numbers in it.
struct Members {
  int first, stride, count;
  [[nodiscard]] std::int64_t world(std::int64_t pe) const { return first + stride * pe; }
  [[nodiscard]] int number_of(int pe) const {
    return pe >= first && (pe - first) % stride == 0 && (pe - first) / stride < count ? (pe - first) / stride : -1;
  }
  [[nodiscard]] Moves in_world(Moves moves) const {
    for (auto& [from, to] : moves) {
      from.pe = world(from.pe);
      to.pe = world(to.pe);
    }
    return moves;
  }
};

/// Teams that exist at the same time: no PE is in two of them.
std::vector<Members> random_teams(Random& random, int pes) {
  switch (pes < 3 ? 0 : random.below(4)) {
    case 0:
      return {{0, 1, pes}};
    case 1:  // even and odd
      return {{0, 2, (pes + 1) / 2}, {1, 2, pes / 2}};
    case 2: {
      const int first = static_cast<int>(random.between(1, pes - 1));
      return {{0, 1, first}, {first, 1, pes - first}};
    }
    default: {  // the other PEs have no team
      const int first = static_cast<int>(random.below(pes - 1));
      return {{first, 1, static_cast<int>(random.between(1, pes - first))}};
    }
  }
}

/// An operator of this PE's team. All PEs construct and destroy it, also those without a team.
class Operator {
 public:
  Operator(shmem_team_t team, const shmemx_kv_options_t& options) {
    check(shmemx_kv_op_create(team, &options, &op_), "creating");
  }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  ~Operator() { check(shmemx_kv_op_destroy(op_), "destroying"); }

  void start(const Plan& plan, shmemx_kv_cache_t cache) {
    check(shmemx_kv_shuffle_start(op_, plan.get(), &cache), "starting");
    cache = {};  // it has been copied
  }
  void finish(bool by_test) {
    if (!by_test) {
      return check(shmemx_kv_shuffle_wait(op_), "waiting");
    }
    for (int done = 0; done == 0;) {
      check(shmemx_kv_shuffle_test(op_, &done), "testing");
      if (done == 0) {
        std::this_thread::yield();
      }
    }
  }
  void shuffle(const Plan& plan, const shmemx_kv_cache_t& cache) {
    check(shmemx_kv_shuffle(op_, plan.get(), &cache), "shuffling");
  }
  void on_stream(const Plan& plan, const shmemx_kv_cache_t& cache, shmemx_stream_t* stream) {
    shmemx_kv_shuffle_on_stream(op_, plan.get(), &cache, stream);
  }

 private:
  shmemx_kv_op_t* op_ = nullptr;
};

/// Staging of a size with which a shuffle of `shape` takes a few rounds, or dozens.
shmemx_kv_options_t random_options(Random& random, const kv_model::Shape& shape) {
  const std::size_t of_a_block = shape.bytes() / static_cast<std::size_t>(shape.blocks);
  std::size_t staging = 0;
  if (of_a_block < 4096 && random.one_in(2)) {
    staging = static_cast<std::size_t>(1) << random.below(9);
  } else if (!random.one_in(4)) {
    staging = 1 + shape.bytes() / static_cast<std::size_t>(random.between(1, 20));
  }
  return {static_cast<std::int32_t>(random.below(8)), static_cast<std::int32_t>(random.below(3)), staging};
}

/// One case: caches, then repeatedly teams with their operators and a few shuffles.
class Case {
 public:
  Case(Arena& arena, shmemx_stream_t* stream, std::uint64_t seed, std::uint64_t number, std::size_t bytes)
      : common_{seed, number},
        own_{seed, number, static_cast<std::uint64_t>(me_)},
        arena_(arena),
        stream_(stream),
        bytes_(bytes / static_cast<std::size_t>(pes_) / 3) {
    g_where = "seed " + std::to_string(seed) + ", case " + std::to_string(number);
    arena.clear();
    caches_.reserve(2);
    for (std::int64_t i = common_.between(1, 2); i > 0; --i) {
      caches_.emplace_back(common_, pes_, kv_model::random_shape(common_, bytes_));
      arena.add(common_, caches_.back());
    }
  }

  void run() {
    for (std::int64_t phases = common_.between(1, 2); phases > 0; --phases) {
      with_teams(random_teams(common_, pes_));
    }
  }

 private:
  void with_teams(const std::vector<Members>& teams) {
    std::vector<shmem_team_t> made;
    shmem_team_t mine = SHMEM_TEAM_INVALID;
    for (const Members& team : teams) {
      shmem_team_t handle = SHMEM_TEAM_INVALID;
      shmem_team_split_strided(SHMEM_TEAM_WORLD, team.first, team.stride, team.count, nullptr, 0, &handle);
      if (handle != SHMEM_TEAM_INVALID) {
        mine = handle;
      }
    }
    teams_ = teams;
    const auto options = random_options(common_, caches_[0].shape());
    const auto others = random_options(common_, caches_[0].shape());
    g_where += "; teams of " + std::to_string(teams[0].first) + "+" + std::to_string(teams[0].stride) + "*" +
               std::to_string(teams[0].count) + ", " + std::to_string(options.cores) + " cores, path " +
               std::to_string(options.path) + ", " + std::to_string(options.staging_bytes) + " bytes for staging";
    {
      Operator op(mine, options);
      for (std::int64_t shuffles = common_.between(1, 5); shuffles > 0; --shuffles) {
        one_after_another(op);
      }
      if (caches_.size() == 2) {
        Operator other(mine, others);
        both_at_once(op, other);
        one_after_another(op);
      }
    }
    if (mine != SHMEM_TEAM_INVALID) {
      shmem_team_destroy(mine);
    }
  }

  [[nodiscard]] const Members* my_team() const {
    const auto team = std::ranges::find_if(teams_, [this](const Members& some) { return some.number_of(me_) >= 0; });
    return team == teams_.end() ? nullptr : &*team;
  }

  /// Makes the next plan of each team and applies it to the model. Returns this PE's plan, if it has a team.
  Plan next_plan(std::size_t cache, std::vector<Slot>* named) {
    Plan mine;
    const bool pairs = common_.one_in(4);
    pairs_ = pairs_ || pairs;
    const int mode = common_.one_in(2) || pairs ? SHMEMX_KV_COPY : SHMEMX_KV_MOVE;
    const std::int64_t blocks = caches_[cache].shape().blocks;
    for (const Members& team : teams_) {
      const PairPlan pair_plan = pairs ? kv_model::random_pairs(common_, team.count, blocks) : PairPlan{};
      const Moves moves = pairs ? pair_plan.all() : kv_model::random_moves(common_, team.count, blocks, mode);
      const Moves in_world = team.in_world(moves);
      caches_[cache].apply(in_world, mode);
      for (const auto& [from, to] : in_world) {
        named->push_back(from);
        named->push_back(to);
      }
      if (const int number = team.number_of(me_); number >= 0) {
        mine = pairs ? kv_test::make_pairs(pair_plan, number) : kv_test::make_plan(as_given(own_, moves), mode);
      }
    }
    return mine;
  }

  /// Changes blocks that no plan names, which the application may use during a shuffle.
  void use_others(std::size_t cache, const std::vector<Slot>& named) {
    if (look_at_others_) {
      return;  // another PE may not have changed its blocks yet
    }
    const std::int64_t blocks = caches_[cache].shape().blocks;
    for (std::int64_t i = common_.below(std::int64_t{2} * pes_); i > 0; --i) {
      const Slot slot{common_.below(pes_), common_.below(blocks)};
      if (std::ranges::find(named, slot) != named.end()) {
        continue;
      }
      caches_[cache].change(slot);
      if (slot.pe == me_) {
        arena_.store(cache, slot.block);
      }
    }
  }

  void one_after_another(Operator& op) {
    const std::size_t cache = static_cast<std::size_t>(common_.below(static_cast<std::int64_t>(caches_.size())));
    pairs_ = false;
    look_at_others_ = common_.one_in(3);
    std::vector<Slot> named;
    std::vector<Plan> plans;
    for (std::int64_t i = common_.one_in(4) ? 3 : 1; i > 0; --i) {
      plans.push_back(next_plan(cache, &named));
    }
    const bool takes_part = my_team() != nullptr;
    const auto described = arena_.cache(cache);
    const std::int64_t how = own_.below(4);  // PEs may do it differently
    bool used = false;
    come_late();
    for (std::size_t i = 0; takes_part && i < plans.size(); ++i) {
      const bool last = i + 1 == plans.size();
      if (how == 0) {
        op.on_stream(plans[i], described, stream_);
      } else if (how == 1) {
        if (last) {
          use_others(cache, named), used = true;
        }
        op.shuffle(plans[i], described);
      } else {
        op.start(plans[i], described);
        if (last) {
          use_others(cache, named), used = true;
        }
        op.finish(how == 2);
      }
    }
    if (!used) {
      use_others(cache, named);
    }
    if (how == 0) {
      check(shmemx_stream_synchronize(stream_), "on a stream");
    }
    compare();
  }

  void both_at_once(Operator& one, Operator& other) {
    pairs_ = false;
    look_at_others_ = common_.one_in(3);
    std::vector<Slot> named, named_too;
    const Plan plan = next_plan(0, &named);
    const Plan plan_too = next_plan(1, &named_too);
    if (my_team() != nullptr) {
      const bool first = own_.one_in(2);
      first ? one.start(plan, arena_.cache(0)) : other.start(plan_too, arena_.cache(1));
      first ? other.start(plan_too, arena_.cache(1)) : one.start(plan, arena_.cache(0));
      Operator& sooner = own_.one_in(2) ? one : other;
      sooner.finish(own_.one_in(2));
      (&sooner == &one ? other : one).finish(own_.one_in(2));
    }
    compare();
  }

  /// Delays some PEs: a PE that enters a call early must not get ahead of the others.
  void come_late() {
    if (own_.one_in(6)) {
      std::this_thread::sleep_for(std::chrono::microseconds(own_.below(600)));
    }
  }

  void compare(int pe) const {
    if (const std::string wrong = arena_.compare(pe); !wrong.empty()) {
      give_up(g_where + ": " + wrong);
    }
  }

  /// Sometimes also compares another member's memory, since the shuffle is complete on all members.
  void compare() {
    compare(me_);
    if (look_at_others_ && my_team() != nullptr && !pairs_) {
      compare(static_cast<int>(my_team()->world(own_.below(my_team()->count))));
    }
    if (look_at_others_) {
      shmem_barrier_all();
    }
  }

  int me_ = shmem_my_pe(), pes_ = shmem_n_pes();
  Random common_, own_;
  Arena& arena_;
  shmemx_stream_t* stream_;
  std::size_t bytes_;
  std::vector<Caches> caches_;
  std::vector<Members> teams_;
  bool pairs_ = false;  // a plan of the last shuffles was one of pairs: only partners have waited for each other
  bool look_at_others_ = false;
};

/// The memory for caches, all of which end before it does.
class Room {
 public:
  Room(const std::string& kind, std::uint64_t seed, std::size_t bytes) {
    using Kind = registered::Memory::Kind;
    if (!kind.empty()) {
      const bool is_private = kind == "private" || shmem_my_pe() % 2 == 1;
      registered_.emplace(is_private ? Kind::kPrivate : Kind::kGiven, bytes);
      check(registered_->add(), "registering memory");
      base_ = registered_->at<std::byte>();
    } else if (seed % 2 == 0 && bytes <= g_memory.size() && shmem_ptr(g_memory.data(), shmem_my_pe()) != nullptr) {
      base_ = g_memory.data();
    }
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() {
    if (registered_) {
      check(registered_->remove(), "unregistering memory");
    }
  }
  /// nullptr: the symmetric heap.
  [[nodiscard]] std::byte* base() const { return base_; }

 private:
  std::optional<registered::Memory> registered_;
  std::byte* base_ = nullptr;
};

}  // namespace

int run(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    return 2;
  }
  shmem_init();
  const std::uint64_t seed = std::stoull(argv[1]);
  const std::uint64_t cases = std::stoull(argv[2]);
  const std::size_t bytes = std::stoull(argv[3]);
  {
    shmemx_stream_t* stream = nullptr;
    check(shmemx_stream_create(&stream), "making a stream");
    const std::size_t each = bytes / static_cast<std::size_t>(shmem_n_pes()) + 4096;
    const Room room(argc == 5 ? argv[4] : "", seed, each);
    Arena arena(each, room.base());
    for (std::uint64_t i = 0; i < cases; ++i) {
      Case(arena, stream, seed, i, bytes).run();
    }
    shmemx_stream_destroy(stream);
  }
  std::printf("PE %d: right\n", shmem_my_pe());
  shmem_finalize();
  return 0;
}

}  // namespace kv_property
