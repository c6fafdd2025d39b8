// SPDX-License-Identifier: Apache-2.0
// PEs that go on when others die.
//
//   survive die  PE...         these PEs kill themselves in a barrier; the others shrink the world and use the rest
//   survive race PE:MICROS...  each of these kills itself so long after it has begun to shrink; 0: before
//   survive hang PE            it stops itself, is left out, and is woken while the others use the rest
//   survive wait PE            it holds a lock and kills itself, while the others wait for words and locks
//   survive rely|return        PE 1 kills itself in a job that has not opted in; with "return" errors return
#include <shmemx_interface.h>
#include <signal.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

/// The members, by their numbers in the world.
std::vector<int> members_of(shmem_team_t team) {
  std::vector<int> members;
  for (int i = 0; i < shmem_team_n_pes(team); ++i) {
    members.push_back(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD));
  }
  return members;
}

std::vector<int> failed_of(shmem_team_t team) {
  std::vector<int> failed(static_cast<std::size_t>(std::max(shmemx_team_failed(team, nullptr, 0), 0)));
  shmemx_team_failed(team, failed.data(), static_cast<int>(failed.size()));
  return failed;
}

std::string text_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text.empty() ? "none" : text;
}

/// Symmetric words, made before anybody dies.
struct Words {
  long* arrivals = pe_checks::allocate<long>();  // barriers that this PE has begun
  long* data = pe_checks::allocate<long>(64);
  long* pid = pe_checks::allocate<long>();
  long* from = pe_checks::allocate<long>(64);  // by PE: what it has put here
  long* sum = pe_checks::allocate<long>();     // what all others have added
};

/// Nothing: the PE is on another node, and has died.
std::optional<long> at(const long* word, int pe) {
  if (void* const here = shmem_ptr(word, pe)) {
    return std::atomic_ref(*static_cast<long*>(here)).load();
  }
  const long value = shmem_long_atomic_fetch(word, pe);
  return shmemx_take_error() == 0 ? std::optional(value) : std::nullopt;
}

/// Barriers none of which may end before all members have begun it. False: one has failed, or, if `all_answer`, a PE on
/// another node has not said in time what it has begun.
bool make_barriers(shmem_team_t team, const Words& words, int count, bool all_answer = false) {
  const auto members = members_of(team);
  for (int i = 0; i < count; ++i) {
    const long mine = std::atomic_ref(*words.arrivals).fetch_add(1) + 1;
    if (shmem_team_sync(team) != 0) {
      return false;
    }
    for (const int pe : members) {
      const auto theirs = at(words.arrivals, pe);
      if (all_answer && !theirs) {
        return false;
      }
      CHECK(theirs.value_or(mine) >= mine);
    }
  }
  return true;
}

/// All members get the same number of barriers to count by.
void align(shmem_team_t team, const Words& words) {
  words.data[0] = *words.arrivals;
  CHECK(shmem_long_max_reduce(team, words.data + 1, words.data, 1) == 0);
  std::atomic_ref(*words.arrivals).store(words.data[1]);
  CHECK(shmem_team_sync(team) == 0);
}

void use_collectives(shmem_team_t team, const Words& words) {
  const auto members = members_of(team);
  long sum = 0;
  for (const int pe : members) {
    sum += pe + 1;
  }
  long* const data = words.data;
  for (int i = 0; i < 100; ++i) {
    data[0] = shmem_my_pe() + 1;
    CHECK(shmem_long_sum_reduce(team, data + 1, data, 1) == 0 && data[1] == sum);
    data[2] = 1000 * shmem_my_pe() + i;
    CHECK(shmem_long_broadcast(team, data + 3, data + 2, 1, 1) == 0);
    CHECK(data[3] == 1000 * members[1] + i);
    CHECK(shmem_long_fcollect(team, data + 4, data, 1) == 0);
    for (std::size_t member = 0; member < members.size(); ++member) {
      CHECK(data[4 + member] == members[member] + 1);
    }
  }
}

void use_splits(shmem_team_t team, const Words& words) {
  const auto members = members_of(team);
  const int size = shmem_team_n_pes(team);
  shmem_team_t part = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(team, size - 1, -1, size, nullptr, 0, &part) == 0);
  CHECK(members_of(part) == std::vector<int>(members.rbegin(), members.rend()));
  CHECK(shmem_team_my_pe(part) == size - 1 - shmem_team_my_pe(team));
  CHECK(make_barriers(part, words, 50));
  use_collectives(part, words);
  shmem_team_destroy(part);
  shmem_team_t rows = SHMEM_TEAM_INVALID;
  shmem_team_t columns = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_2d(team, 2, nullptr, 0, &rows, nullptr, 0, &columns) == 0);
  CHECK(shmem_team_sync(rows) == 0 && shmem_team_sync(columns) == 0);
  shmem_team_destroy(rows);
  shmem_team_destroy(columns);
  // Slots are given back, those of teams whose members are not evenly spaced, too.
  for (int i = 0; i < 20; ++i) {
    CHECK(shmem_team_split_strided(team, 0, 1, size, nullptr, 0, &part) == 0);
    const int number = shmemx_team_number(part);
    CHECK(number < 32);
    CHECK(make_barriers(part, words, 3));
    shmem_team_destroy(part);
  }
}

/// Memory, and a shuffle in which member i sends block i to the next one.
void use_memory(shmem_team_t team) {
  const auto members = members_of(team);
  const int size = shmem_team_n_pes(team);
  const int me = shmem_team_my_pe(team);
  constexpr std::size_t kBlock = 64;
  auto* cache = pe_checks::allocate<std::uint64_t>(static_cast<std::size_t>(size) * kBlock);
  CHECK(cache != nullptr);
  for (std::size_t i = 0; i < kBlock; ++i) {
    cache[static_cast<std::size_t>(me) * kBlock + i] = static_cast<std::uint64_t>(100 * me) + i;
  }
  std::vector<shmemx_kv_move_t> moves;
  for (int i = 0; i < size; ++i) {
    moves.push_back({i, i, (i + 1) % size, i});
  }
  shmemx_kv_plan_t* plan = nullptr;
  shmemx_kv_op_t* op = nullptr;
  CHECK(shmemx_kv_plan_create(moves.data(), moves.size(), SHMEMX_KV_COPY, &plan) == 0);
  CHECK(shmemx_kv_op_create(team, nullptr, &op) == 0);
  const shmemx_kv_cache_t described{cache, nullptr, SHMEMX_KV_LATENT, 8, 1, size, 1, 1, kBlock};
  CHECK(shmemx_kv_shuffle(op, plan, &described) == 0);
  const int before = (me + size - 1) % size;
  for (std::size_t i = 0; i < kBlock; ++i) {
    CHECK(cache[static_cast<std::size_t>(before) * kBlock + i] == static_cast<std::uint64_t>(100 * before) + i);
  }
  CHECK(shmemx_kv_op_destroy(op) == 0);
  shmemx_kv_plan_destroy(plan);
  shmem_free(cache);
  CHECK(shmemx_take_error() == 0);
}

void report(const char* what, shmem_team_t old_team, shmem_team_t new_team) {
  shmemx_team_info_t info{};
  shmemx_team_info(new_team, &info);
  std::printf("PE %d: %s: %s -> %s, team %d, failed %s, by %s\n", shmem_my_pe(), what,
              text_of(members_of(old_team)).c_str(), text_of(members_of(new_team)).c_str(),
              shmemx_team_number(new_team), text_of(failed_of(old_team)).c_str(), info.algorithm);
  std::fflush(stdout);
}

int end() {
  shmem_finalize();
  CHECK(shmemx_take_error() == 0);
  return pe_failures() == 0 ? 0 : 1;
}

/// Teams without a victim that this PE is in: for each stride, the longest one. Collective over the world.
std::vector<shmem_team_t> split_without(const std::vector<int>& victims) {
  std::vector<shmem_team_t> teams;
  for (int stride = 1; stride < shmem_n_pes(); ++stride) {
    int best_start = 0;
    int best_size = 0;
    for (int start = 0; start < shmem_n_pes(); ++start) {
      int size = 0;
      for (int pe = start; pe < shmem_n_pes() && std::ranges::find(victims, pe) == victims.end(); pe += stride) {
        ++size;
      }
      if (size > best_size) {
        best_start = start;
        best_size = size;
      }
    }
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, best_start, stride, best_size, nullptr, 0, &team) == 0);
    if (team != SHMEM_TEAM_INVALID) {
      teams.push_back(team);
    }
  }
  return teams;
}

void use_teams(const std::vector<shmem_team_t>& teams, const Words& words) {
  for (shmem_team_t team : teams) {
    CHECK(shmem_team_sync(team) == 0);  // the words are no longer in use by another team
    align(team, words);
    CHECK(make_barriers(team, words, 20));
    if (shmem_team_n_pes(team) > 1) {
      use_collectives(team, words);
    }
  }
  CHECK(shmemx_take_error() == 0);
}

/// Puts, gets and atomics between PEs that live.
void access_each(const std::vector<int>& living, const Words& words) {
  const int me = shmem_my_pe();
  for (const int pe : living) {
    const long mine = 100 * me + pe + 1;
    shmem_long_p(words.from + me, mine, pe);
    shmem_quiet();
    CHECK(shmem_long_g(words.from + me, pe) == mine);
    const long next = -mine;
    shmem_long_put_nbi(words.from + me, &next, 1, pe);
    shmem_quiet();
    long back = 0;
    shmem_long_get(&back, words.from + me, 1, pe);
    CHECK(back == next);
    CHECK(shmem_long_atomic_compare_swap(words.from + me, next, mine, pe) == next);
    CHECK(shmem_long_atomic_fetch(words.from + me, pe) == mine);
    shmem_long_atomic_add(words.sum, me + 1, pe);
    shmem_quiet();
    CHECK(shmemx_take_error() == 0);
  }
}

/// After the shrink, and a barrier.
void check_accesses(const std::vector<int>& living, const Words& words) {
  long sum = 0;
  for (const int pe : living) {
    CHECK(words.from[pe] == 100 * pe + shmem_my_pe() + 1);
    sum += pe + 1;
  }
  CHECK(*words.sum == sum);
}

int die_and_go_on(const std::vector<int>& victims) {
  const Words words;
  const auto teams = split_without(victims);
  CHECK(make_barriers(SHMEM_TEAM_WORLD, words, 10));
  const auto dies = [&](int pe) { return std::ranges::find(victims, pe) != victims.end(); };
  if (dies(shmem_my_pe())) {
    die();
  }
  std::vector<int> expected;
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    if (!dies(pe)) {
      expected.push_back(pe);
    }
  }
  const int error = pe_checks::fails_soon([] { return shmem_team_sync(SHMEM_TEAM_WORLD); });
  CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) < shmem_n_pes() ? error < 0 : error == -EOWNERDEAD);
  shmem_quiet();  // reports what was begun on the dead PEs, once
  shmemx_take_error();
  // Only calls that need a dead PE fail.
  use_teams(teams, words);
  access_each(expected, words);
  shmem_team_t rest = SHMEM_TEAM_INVALID;
  CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &rest) == 0);
  CHECK(members_of(rest) == expected);
  CHECK(failed_of(SHMEM_TEAM_WORLD) == victims);
  CHECK(failed_of(rest).empty());
  CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == error);  // still
  align(rest, words);
  CHECK(make_barriers(rest, words, 1000));
  report("die", SHMEM_TEAM_WORLD, rest);
  check_accesses(expected, words);
  use_teams(teams, words);
  for (shmem_team_t team : teams) {
    shmem_team_destroy(team);
  }
  CHECK(shmem_team_sync(rest) == 0);
  align(rest, words);
  use_collectives(rest, words);
  use_splits(rest, words);
  use_memory(rest);
  CHECK(make_barriers(rest, words, 100));
  // It ends with the job only.
  shmem_team_destroy(rest);
  CHECK(shmemx_take_error() == -EINVAL);
  shmemx_team_info_t info{};
  CHECK(shmemx_team_info(rest, &info) == 0);
  CHECK(std::string_view(info.algorithm) != "gba" || info.by_device > 1000);
  return end();
}

int die_in_shrinks(const std::vector<std::pair<int, int>>& victims) {
  const Words words;
  CHECK(make_barriers(SHMEM_TEAM_WORLD, words, 10));
  const auto mine = std::ranges::find(victims, shmem_my_pe(), &std::pair<int, int>::first);
  std::thread killer;
  if (mine != victims.end()) {
    if (mine->second == 0) {
      die();
    }
    killer = std::thread([micros = mine->second] {
      // The others notice the first death after half a second.
      std::this_thread::sleep_for(std::chrono::microseconds(micros));
      die();
    });
  }
  shmem_team_t team = SHMEM_TEAM_WORLD;
  // The last victim's time is short: afterwards nobody dies any more, and all that are left are in one team.
  for (bool done = false; !done;) {
    done = make_barriers(team, words, 300);
    if (!done) {
      shmem_team_t next = SHMEM_TEAM_INVALID;
      const int error = shmemx_team_shrink(team, &next);
      CHECK(error == 0);
      if (error != 0) {
        break;
      }
      report("race", team, next);
      team = next;
      words.data[0] = *words.arrivals;
      if (shmem_long_max_reduce(team, words.data + 1, words.data, 1) == 0) {
        std::atomic_ref(*words.arrivals).store(words.data[1]);
        shmem_team_sync(team);
      }
    }
    // A victim may still be there.
    const auto members = members_of(team);
    done = done && std::ranges::none_of(victims, [&](const auto& victim) {
             return std::ranges::find(members, victim.first) != members.end();
           });
  }
  if (killer.joinable()) {
    killer.join();
  }
  report("end", team, team);
  shmemx_take_error();
  return end();
}

/// The PE that hangs, once it has been woken.
int come_back(const Words& words) {
  while (make_barriers(SHMEM_TEAM_WORLD, words, 1)) {
  }
  CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) < 0);
  shmem_team_t rest = SHMEM_TEAM_INVALID;
  CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &rest) == -ENOTRECOVERABLE);
  CHECK(std::string_view(shmemx_error_text()).find("was left out") != std::string_view::npos);
  CHECK(rest == SHMEM_TEAM_INVALID);
  shmemx_take_error();
  CHECK(shmem_malloc(64) == nullptr && shmemx_take_error() != 0);
  CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words.data + 1, words.data, 1) != 0);
  std::printf("PE %d: left out: %s\n", shmem_my_pe(), shmemx_error_text());
  std::fflush(stdout);
  shmem_finalize();
  CHECK(shmemx_take_error() != 0);
  return pe_failures() == 0 ? 0 : 1;
}

int hang(int victim) {
  const Words words;
  *words.pid = ::getpid();
  CHECK(make_barriers(SHMEM_TEAM_WORLD, words, 10));
  const pid_t theirs = static_cast<pid_t>(at(words.pid, victim).value());
  if (shmem_my_pe() == victim) {
    std::thread stopper([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // in the middle of a barrier, as a rule
      ::kill(::getpid(), SIGSTOP);
    });
    const int status = come_back(words);
    stopper.join();
    return status;
  }
  // A second wait for its answer, after another barrier, would last until the others' shrink is over.
  while (make_barriers(SHMEM_TEAM_WORLD, words, 1, true)) {
  }
  shmem_team_t rest = SHMEM_TEAM_INVALID;
  CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &rest) == 0);
  CHECK(failed_of(SHMEM_TEAM_WORLD) == std::vector{victim});
  report("hang", SHMEM_TEAM_WORLD, rest);
  align(rest, words);
  CHECK(make_barriers(rest, words, 100));
  if (shmem_team_my_pe(rest) == 0) {
    ::kill(theirs, SIGCONT);
  }
  // Meanwhile it does its worst.
  for (int i = 0; i < 20; ++i) {
    CHECK(make_barriers(rest, words, 200));
    use_collectives(rest, words);
    void* const block = shmem_malloc(4096);
    CHECK(block != nullptr);
    shmem_free(block);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  use_memory(rest);
  return end();
}

/// The call before has failed because of that PE, or of the shrink that another PE has begun because of it; this one
/// begins it last.
void expect_death(int victim, bool last) {
  const std::string text = shmemx_error_text();
  CHECK(shmemx_take_error() == -EOWNERDEAD);
  CHECK(text.find("PE " + std::to_string(victim) + " (") != std::string::npos ||
        (!last && text.find("has called shmemx_team_shrink") != std::string::npos));
}

void wait_for_dead(int victim, bool last, long* held, const Words& words) {
  auto* const signal = reinterpret_cast<std::uint64_t*>(words.data + 1);
  const auto fails = [&](auto call) {
    pe_checks::fails_soon([&] {
      call();
      return 0;
    });
    expect_death(victim, last);
  };
  fails([&] { shmem_long_wait_until(words.data, SHMEM_CMP_NE, 0); });
  fails([&] { CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1) == 0); });
  if (shmem_team_n_pes(SHMEM_TEAM_SHARED) == shmem_n_pes()) {
    fails([&] { shmem_set_lock(held); });
  }
}

int wait_in_vain(int victim) {
  const Words words;
  long* const held = pe_checks::allocate<long>();
  long* const other = pe_checks::allocate<long>();
  const int me = shmem_my_pe();
  const int holder = victim == 0 ? 1 : 0;
  const int waiter = shmem_n_pes() - 1;
  const bool on_nodes = shmem_team_n_pes(SHMEM_TEAM_SHARED) < shmem_n_pes();
  if (me == victim) {
    shmem_set_lock(held);
  } else if (me == holder) {
    shmem_set_lock(other);
  }
  CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0);
  if (me == victim) {
    die();
  }
  if (me == waiter && !on_nodes) {
    // A lock that the dead PE has nothing to do with.
    shmem_set_lock(other);
    CHECK(shmemx_take_error() == 0);
    shmem_clear_lock(other);
    std::atomic_ref(words.data[2]).store(1);
  }
  wait_for_dead(victim, me == holder && !on_nodes, held, words);
  if (me == holder) {
    shmem_clear_lock(other);  // seconds after the death
    CHECK(shmemx_take_error() == 0);
  }
  while (!on_nodes && at(words.data + 2, waiter).value() == 0) {
    std::this_thread::yield();  // a shrink would end its wait
  }
  shmem_team_t rest = SHMEM_TEAM_INVALID;
  CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &rest) == 0);
  *held = *other = words.data[0] = words.data[1] = 0;
  if (me == holder && !on_nodes) {
    shmem_long_atomic_set(held, 0, victim);  // PE 0's word is that of all requests
    shmem_long_atomic_set(other, 0, victim);
  }
  CHECK(shmem_team_sync(rest) == 0);
  for (int i = 0; i < 20; ++i) {
    shmem_set_lock(held);
    shmem_long_p(words.data + 3, shmem_long_g(words.data + 3, holder) + 1, holder);
    shmem_clear_lock(held);
  }
  CHECK(shmem_team_sync(rest) == 0);
  CHECK(me != holder || words.data[3] == 20 * shmem_team_n_pes(rest));
  // All that are left live.
  if (me == holder) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    for (int i = 0; i < shmem_team_n_pes(rest); ++i) {
      shmem_long_p(words.data, 5, shmem_team_translate_pe(rest, i, SHMEM_TEAM_WORLD));
    }
  }
  shmem_long_wait_until(words.data, SHMEM_CMP_EQ, 5);
  CHECK(shmemx_take_error() == 0);
  report("wait", SHMEM_TEAM_WORLD, rest);
  return end();
}

/// Without shmemx_set_survive.
int rely(bool errors_return) {
  shmemx_set_errors_return(errors_return ? 1 : 0);
  shmem_init();
  shmem_barrier_all();
  if (shmem_my_pe() == 1) {
    die();
  }
  shmem_team_t rest = SHMEM_TEAM_INVALID;
  if (errors_return) {
    CHECK(shmemx_team_shrink(SHMEM_TEAM_WORLD, &rest) == -EPERM && rest == SHMEM_TEAM_INVALID);
  }
  shmem_barrier_all();
  CHECK(errors_return && shmemx_take_error() < 0);
  std::printf("PE %d: the barrier returned\n", shmem_my_pe());
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace

PE_PART(survive) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "rely" || mode == "return") {
    return rely(mode == "return");
  }
  CHECK(shmemx_set_survive(1) == 0);
  shmem_init();
  CHECK(shmemx_set_survive(0) == -EALREADY);
  if (mode == "die") {
    std::vector<int> victims;
    for (int i = 2; i < argc; ++i) {
      victims.push_back(std::stoi(argv[i]));
    }
    return die_and_go_on(victims);
  }
  if (mode == "race") {
    std::vector<std::pair<int, int>> victims;
    for (int i = 2; i < argc; ++i) {
      const std::string text = argv[i];
      victims.emplace_back(std::stoi(text), std::stoi(text.substr(text.find(':') + 1)));
    }
    return die_in_shrinks(victims);
  }
  if (mode == "wait" && argc == 3) {
    return wait_in_vain(std::stoi(argv[2]));
  }
  return mode == "hang" && argc == 3 ? hang(std::stoi(argv[2])) : 2;
}
