// SPDX-License-Identifier: Apache-2.0
// Processes that take the places of PEs that have died, or that hang.
//
//   seat once FILE PE...         these PEs kill themselves once
//   seat hang FILE PE...         these PEs stop themselves once
//   seat often FILE TIMES PE...  these PEs kill themselves so often, each time at a random moment
//
// FILE is an empty file, in which the PEs' processes leave a byte each.
#include <fcntl.h>
#include <shmemx_interface.h>
#include <signal.h>

#include "tests/integration/shmem/registered_memory.hpp"

namespace {

using registered::Memory;

// Symmetric.
long arrivals;  // barriers that this PE has begun
long words[4];
long ready;  // this process does not kill itself any more
long distance;

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

long at(const long* word, int pe) {
  return std::atomic_ref(*static_cast<long*>(shmem_ptr(word, pe))).load();
}

/// How many processes were this PE before.
long count_process(const std::string& file) {
  const int fd = ::open((file + "." + std::to_string(shmem_my_pe())).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  CHECK(fd >= 0 && ::write(fd, "x", 1) == 1);
  const long before = ::lseek(fd, 0, SEEK_CUR) - 1;
  ::close(fd);
  return before;
}

/// All members count their barriers from the same number.
bool align(shmem_team_t team) {
  words[0] = arrivals;
  if (shmem_long_max_reduce(team, words + 1, words, 1) != 0) {
    return false;
  }
  std::atomic_ref(arrivals).store(words[1]);
  return shmem_team_sync(team) == 0;
}

/// Barriers none of which may end before all members have begun it. False: one has failed.
bool make_barriers(shmem_team_t team, int count) {
  for (int i = 0; i < count; ++i) {
    const long mine = std::atomic_ref(arrivals).fetch_add(1) + 1;
    if (shmem_team_sync(team) != 0) {
      return false;
    }
    for (int member = 0; member < shmem_team_n_pes(team); ++member) {
      const int pe = shmem_team_translate_pe(team, member, SHMEM_TEAM_WORLD);
      // The process of a member that has died since has a successor that begins with 0.
      const long theirs = at(&arrivals, pe);
      CHECK(theirs >= mine || shmemx_team_failed(team, nullptr, 0) > 0);
    }
  }
  return true;
}

void report(const char* what, shmem_team_t team) {
  shmemx_team_info_t info{};
  shmemx_team_info(team, &info);
  std::printf("PE %d: %s: %d members, %s, by %s\n", shmem_my_pe(), what, shmem_team_n_pes(team),
              shmemx_is_replacement() != 0 ? "new" : "old", info.algorithm);
  std::fflush(stdout);
}

/// The block of those that have not died: their data is as before, that of the new processes is zero.
void check_memory(shmem_team_t team, long* block, const std::vector<int>& victims) {
  long* const marker = pe_checks::allocate<long>(64);
  distance = block != nullptr ? marker - block : 0;
  CHECK(shmem_long_max_reduce(team, words, &distance, 1) == 0);
  long* const mine = marker - words[0];
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    const bool is_new = std::ranges::find(victims, pe) != victims.end();
    for (int i = 0; i < 64; ++i) {
      CHECK(at(mine + i, pe) == (is_new ? 0 : 100 * pe + i));
    }
  }
  CHECK(shmem_team_sync(team) == 0);
  const int next = (shmem_my_pe() + 1) % shmem_n_pes();
  shmem_long_p(mine, 7 + shmem_my_pe(), next);
  CHECK(shmem_team_sync(team) == 0);
  CHECK(*mine == 7 + (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes());
  shmem_free(marker);
  shmem_free(mine);
  CHECK(shmemx_take_error() == 0);
}

void check_collectives(shmem_team_t team) {
  for (int i = 0; i < 100; ++i) {
    words[0] = shmem_my_pe() + 1;
    CHECK(shmem_long_sum_reduce(team, words + 1, words, 1) == 0);
    CHECK(words[1] == long{shmem_n_pes()} * (shmem_n_pes() + 1) / 2);
  }
  shmem_team_t part = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(team, 0, 1, 2, nullptr, 0, &part) == 0);
  if (part != SHMEM_TEAM_INVALID) {
    CHECK(make_barriers(part, 20));
    shmem_team_destroy(part);
  }
}

/// Puts, gets and atomic operations between all pairs, of new processes and old ones.
void check_accesses(shmem_team_t team) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  long* const from = pe_checks::allocate<long>(static_cast<std::size_t>(pes) + 1);
  long* const sum = from + pes;
  for (int pe = 0; pe < pes; ++pe) {
    const long mine = 100 * me + pe + 1;
    shmem_long_put(from + me, &mine, 1, pe);
    CHECK(shmem_long_g(from + me, pe) == mine);
    CHECK(shmem_long_atomic_fetch_inc(from + me, pe) == mine);
    shmem_long_atomic_add(sum, me + 1, pe);
  }
  shmem_quiet();
  CHECK(shmem_team_sync(team) == 0);
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(from[pe] == 100 * pe + me + 2);
  }
  CHECK(*sum == long{pes} * (pes + 1) / 2);
  CHECK(shmem_team_sync(team) == 0);
  shmem_free(from);
  CHECK(shmemx_take_error() == 0);
}

/// Member i sends block i of its cache to all others.
void check_shuffle(shmem_team_t team) {
  const int me = shmem_team_my_pe(team);
  const int size = shmem_team_n_pes(team);
  constexpr std::size_t kBlock = 512;
  const auto value = [](int member, std::size_t at) { return static_cast<std::uint64_t>(1000 * member) + at + 1; };
  auto* const cache = pe_checks::allocate<std::uint64_t>(static_cast<std::size_t>(size) * kBlock);
  std::vector<shmemx_kv_move_t> moves;
  for (int i = 0; i < size; ++i) {
    for (int to = 0; to < size; ++to) {
      if (to != i) {
        moves.push_back({i, i, to, i});
      }
    }
  }
  for (std::size_t at = 0; at < kBlock; ++at) {
    cache[static_cast<std::size_t>(me) * kBlock + at] = value(me, at);
  }
  shmemx_kv_plan_t* plan = nullptr;
  shmemx_kv_op_t* op = nullptr;
  CHECK(shmemx_kv_plan_create(moves.data(), moves.size(), SHMEMX_KV_COPY, &plan) == 0);
  CHECK(shmemx_kv_op_create(team, nullptr, &op) == 0);
  const shmemx_kv_cache_t described{cache, nullptr, SHMEMX_KV_LATENT, 8, 1, size, 1, 1, kBlock};
  CHECK(shmemx_kv_shuffle(op, plan, &described) == 0);
  for (int member = 0; member < size; ++member) {
    for (std::size_t at = 0; at < kBlock; ++at) {
      CHECK(cache[static_cast<std::size_t>(member) * kBlock + at] == value(member, at));
    }
  }
  CHECK(shmemx_kv_op_destroy(op) == 0);
  shmemx_kv_plan_destroy(plan);
  shmem_free(cache);
  CHECK(shmemx_take_error() == 0);
}

/// `before`: registered by the PEs that have not died, and by those that have.
void check_registered(shmem_team_t team, const Memory& before) {
  // A new process does not have it, so it cannot be used together, and is given up on all PEs.
  CHECK(before.remove() == -EINVAL);
  CHECK(std::string_view(shmemx_error_text()).find("has registered no memory") != std::string_view::npos);
  shmemx_take_error();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  for (const auto kind : {Memory::Kind::kGiven, Memory::Kind::kPrivate}) {
    const Memory memory(kind, 8192);
    long* const from = memory.at<long>();
    std::memset(from, 0, memory.bytes());
    CHECK(memory.add() == 0);
    for (int pe = 0; pe < pes; ++pe) {
      const long mine = 100 * me + pe + 1;
      shmem_long_put(from + me, &mine, 1, pe);
      CHECK(shmem_long_g(from + me, pe) == mine);
    }
    shmem_quiet();
    CHECK(shmem_team_sync(team) == 0);
    for (int pe = 0; pe < pes; ++pe) {
      CHECK(from[pe] == 100 * pe + me + 1);
    }
    CHECK(memory.remove() == 0);
  }
  CHECK(shmemx_take_error() == 0);
}

/// The new team has all PEs.
void use_grown(shmem_team_t team, long* block, const Memory& memory, const std::vector<int>& victims) {
  CHECK(shmem_team_my_pe(team) == shmem_my_pe());
  CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) < 0);  // the process before is its member, not the new one
  CHECK(align(team) && make_barriers(team, 1000));
  report("grown", team);
  check_memory(team, block, victims);
  check_collectives(team);
  check_accesses(team);
  check_shuffle(team);
  check_registered(team, memory);
  CHECK(align(team) && make_barriers(team, 100));
}

int once(const std::vector<int>& victims, bool hangs) {
  const bool is_new = shmemx_is_replacement() != 0;
  shmem_team_t rest = SHMEM_TEAM_WORLD;
  long* block = nullptr;
  const Memory memory(Memory::Kind::kGiven, 4096);
  if (!is_new) {
    CHECK(memory.add() == 0);
    shmem_free(pe_checks::allocate<long>(1000));
    block = pe_checks::allocate<long>(64);
    for (int i = 0; i < 64; ++i) {
      block[i] = 100 * shmem_my_pe() + i;
    }
    CHECK(make_barriers(SHMEM_TEAM_WORLD, 10));
    if (std::ranges::find(victims, shmem_my_pe()) != victims.end()) {
      ::kill(::getpid(), hangs ? SIGSTOP : SIGKILL);
    }
    CHECK(pe_checks::fails_soon([] { return shmem_team_sync(SHMEM_TEAM_WORLD); }) < 0);
    if (hangs) {
      CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &rest) == 0);
    }
  } else {
    CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == -EOWNERDEAD);
    shmem_team_t none = SHMEM_TEAM_INVALID;
    CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &none) == -EPERM);
    shmemx_take_error();
  }
  shmem_team_t team = SHMEM_TEAM_INVALID;
  CHECK(shmemx_team_grow(rest, static_cast<int>(victims.size()), &team) == 0);
  if (shmem_team_n_pes(team) < shmem_n_pes()) {
    CHECK(make_barriers(team, 100));
    report("left", team);
    shmem_finalize();
    return shmemx_take_error() == 0 && pe_failures() == 0 ? 0 : 1;
  }
  use_grown(team, block, memory, victims);
  shmem_finalize();
  CHECK(shmemx_take_error() == 0);
  return pe_failures() == 0 ? 0 : 1;
}

int often(long before, long times, const std::vector<int>& victims) {
  const bool dies = std::ranges::find(victims, shmem_my_pe()) != victims.end() && before < times;
  ready = dies ? 0 : 1;
  if (dies) {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(std::random_device{}() % 700'000));
      die();
    }).detach();
  }
  shmem_team_t team = SHMEM_TEAM_WORLD;
  bool grows = shmemx_is_replacement() != 0;
  for (;;) {
    if (grows) {
      shmem_team_t next = SHMEM_TEAM_INVALID;
      const int error = shmemx_team_grow(team, 1, &next);
      CHECK(error == 0);
      if (error != 0) {
        break;
      }
      team = next;
      report("often", team);
    }
    // All that fail here, and all that do not, grow next, or are done.
    bool done = align(team) && make_barriers(team, 100) && shmem_team_n_pes(team) == shmem_n_pes();
    if (done) {
      done = shmem_long_min_reduce(team, words, &ready, 1) == 0 && words[0] == 1;
    }
    if (done) {
      break;
    }
    grows = shmem_team_sync(team) != 0 || shmem_team_n_pes(team) != shmem_n_pes();
  }
  report("end", team);
  check_collectives(team);
  shmemx_take_error();
  shmem_finalize();
  CHECK(shmemx_take_error() == 0);
  return pe_failures() == 0 ? 0 : 1;
}

}  // namespace

PE_PART(seat) {
  const std::string mode = argc > 2 ? argv[1] : "";
  CHECK(shmemx_set_survive(1) == 0);
  shmem_init();
  if (const int error = shmemx_take_error(); error != 0) {
    std::printf("shmem_init: %s\n", shmemx_error_text());
    return 3;
  }
  const long before = count_process(argv[2]);
  std::vector<int> victims;
  for (int i = mode == "often" ? 4 : 3; i < argc; ++i) {
    victims.push_back(std::stoi(argv[i]));
  }
  return mode == "often" ? often(before, std::stol(argv[3]), victims) : once(victims, mode == "hang");
}
