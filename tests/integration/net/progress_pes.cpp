// SPDX-License-Identifier: Apache-2.0
// Every remote operation of OpenSHMEM 1.6 on the memory of a PE that computes and makes no calls: each ends, with the
// right result. So do waits of the other PEs for each other, collective calls of a team that the computing PE is not
// in, and locks. On at least 3 PEs.
//
//   progress           the first and the last PE compute in turn
//   progress exit      PE 0 computes without end; PE 1 ends the job
//   progress wait      PE 0 computes without end; the others wait for it
#include "tests/integration/net/computing_target.hpp"

namespace {

using computing_target::look;

constexpr std::size_t kWords = 16;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr int kMostPes = 8;
constexpr int kThreads = 2;

/// The memory of the target that one thread of an actor uses.
struct Slot {
  long words[kWords];
  unsigned bits;
  unsigned long long_bits;
  float single;
  double number;
  std::uint64_t signal;
};

using SlotsOfPe = Slot[kThreads];
SlotsOfPe global_slots[kMostPes];
std::uint64_t global_done;
long lock;
long counter;  // protected by `lock`

/// A thread of an actor, and where it works.
struct Actor {
  shmem_ctx_t ctx;
  int target;
  Slot* slot;
  unsigned char* bytes;  // kLarge

  /// Each of the ways in turn.
  void complete() {
    if (++completions % 2 == 0) {
      shmem_ctx_quiet(ctx);
    } else {
      shmem_ctx_pe_quiet(ctx, &target, 1);
    }
  }

  int completions = 0;
};

/// Expects words at the target to be those of `from`, in steps of `stride`.
void expect_words(Actor& actor, const long* from, std::size_t count, std::size_t stride) {
  long back[kWords] = {};
  shmem_get(actor.ctx, back, actor.slot->words, kWords, actor.target);
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(back[i * stride] == from[i]);
  }
}

void copy_words(Actor& actor, long salt) {
  long from[kWords];
  long back[kWords] = {};
  std::iota(std::begin(from), std::end(from), salt);
  long* const words = actor.slot->words;
  const auto [ctx, target] = std::pair(actor.ctx, actor.target);
  shmem_p(ctx, words, salt - 1, target);
  actor.complete();
  CHECK(shmem_g(ctx, words, target) == salt - 1);
  shmem_put(ctx, words, from, kWords, target);
  shmem_ctx_fence(ctx);
  actor.complete();
  expect_words(actor, from, kWords, 1);
  shmem_put_nbi(ctx, words, from + 1, kWords - 1, target);
  actor.complete();
  shmem_get_nbi(ctx, back, words, kWords - 1, target);
  actor.complete();
  CHECK(std::memcmp(back, from + 1, sizeof(long) * (kWords - 1)) == 0);
  shmem_iput(ctx, words, from, 2, 1, kWords / 2, target);
  actor.complete();
  expect_words(actor, from, kWords / 2, 2);
  shmem_iget(ctx, back, words, 1, 2, kWords / 2, target);
  CHECK(std::memcmp(back, from, sizeof(long) * kWords / 2) == 0);
  shmem_ibput(ctx, words, from, 4, 2, 2, kWords / 4, target);
  actor.complete();
  shmem_ibget(ctx, back, words, 2, 4, 2, kWords / 4, target);
  CHECK(std::memcmp(back, from, sizeof(long) * kWords / 2) == 0);
}

/// More than one message has room for.
void copy_bytes(Actor& actor, int salt) {
  std::vector<unsigned char> from(kLarge, static_cast<unsigned char>(salt));
  std::vector<unsigned char> back(kLarge);
  shmem_ctx_putmem(actor.ctx, actor.bytes, from.data(), kLarge, actor.target);
  actor.complete();
  shmem_ctx_getmem(actor.ctx, back.data(), actor.bytes, kLarge, actor.target);
  CHECK(back == from);
  from.assign(kLarge, static_cast<unsigned char>(salt + 1));
  shmem_ctx_putmem_nbi(actor.ctx, actor.bytes, from.data(), kLarge, actor.target);
  actor.complete();
  shmem_ctx_getmem_nbi(actor.ctx, back.data(), actor.bytes, kLarge, actor.target);
  actor.complete();
  CHECK(back == from);
}

template <typename T>
void change_values(Actor& actor, T* word) {
  const auto [ctx, pe] = std::pair(actor.ctx, actor.target);
  T before{};
  shmem_atomic_set(ctx, word, T{3}, pe);
  actor.complete();
  CHECK(shmem_atomic_fetch(ctx, word, pe) == T{3});
  CHECK(shmem_atomic_swap(ctx, word, T{5}, pe) == T{3});
  shmem_atomic_swap_nbi(ctx, &before, word, T{7}, pe);
  actor.complete();
  CHECK(before == T{5});
  shmem_atomic_fetch_nbi(ctx, &before, word, pe);
  actor.complete();
  CHECK(before == T{7});
}

template <typename T>
void change_numbers(Actor& actor, T* word) {
  const auto [ctx, pe] = std::pair(actor.ctx, actor.target);
  T before{};
  shmem_atomic_set(ctx, word, T{0}, pe);
  actor.complete();
  shmem_atomic_inc(ctx, word, pe);
  shmem_atomic_add(ctx, word, T{4}, pe);
  actor.complete();
  CHECK(shmem_atomic_fetch_inc(ctx, word, pe) == 5);
  CHECK(shmem_atomic_fetch_add(ctx, word, T{4}, pe) == 6);
  shmem_atomic_fetch_inc_nbi(ctx, &before, word, pe);
  actor.complete();
  CHECK(before == 10);
  shmem_atomic_fetch_add_nbi(ctx, &before, word, T{4}, pe);
  actor.complete();
  CHECK(before == 11);
  CHECK(shmem_atomic_compare_swap(ctx, word, T{14}, T{1}, pe) == 15);
  CHECK(shmem_atomic_compare_swap(ctx, word, T{15}, T{1}, pe) == 15);
  shmem_atomic_compare_swap_nbi(ctx, &before, word, T{1}, T{2}, pe);
  actor.complete();
  CHECK(before == 1 && shmem_atomic_fetch(ctx, word, pe) == 2);
}

template <typename T>
void change_bits(Actor& actor, T* word) {
  const auto [ctx, pe] = std::pair(actor.ctx, actor.target);
  T before{};
  shmem_atomic_set(ctx, word, T{0xff}, pe);
  actor.complete();
  shmem_atomic_and(ctx, word, T{0xf0}, pe);
  actor.complete();
  shmem_atomic_or(ctx, word, T{0x03}, pe);
  actor.complete();
  shmem_atomic_xor(ctx, word, T{0x0f}, pe);
  actor.complete();
  CHECK(shmem_atomic_fetch_and(ctx, word, T{0x3c}, pe) == 0xfc);
  CHECK(shmem_atomic_fetch_or(ctx, word, T{0x01}, pe) == 0x3c);
  CHECK(shmem_atomic_fetch_xor(ctx, word, T{0x11}, pe) == 0x3d);
  shmem_atomic_fetch_and_nbi(ctx, &before, word, T{0x0f}, pe);
  actor.complete();
  CHECK(before == 0x2c);
  shmem_atomic_fetch_or_nbi(ctx, &before, word, T{0x30}, pe);
  actor.complete();
  CHECK(before == 0x0c);
  shmem_atomic_fetch_xor_nbi(ctx, &before, word, T{0x01}, pe);
  actor.complete();
  CHECK(before == 0x3c && shmem_atomic_fetch(ctx, word, pe) == 0x3d);
}

void signal_with_data(Actor& actor, long salt) {
  const shmem_ctx_t ctx = actor.ctx;
  const int pe = actor.target;
  long from[kWords];
  std::iota(std::begin(from), std::end(from), salt);
  std::uint64_t* const signal = &actor.slot->signal;
  const auto expect_signal = [&](std::uint64_t value) {
    actor.complete();
    CHECK(shmem_atomic_fetch(ctx, signal, pe) == value);
  };
  shmem_put_signal(ctx, actor.slot->words, from, kWords, signal, 5, SHMEM_SIGNAL_SET, pe);
  expect_signal(5);
  shmem_put_signal_nbi(ctx, actor.slot->words, from, kWords, signal, 2, SHMEM_SIGNAL_ADD, pe);
  expect_signal(7);
  expect_words(actor, from, kWords, 1);
  shmem_signal_set(ctx, signal, 3, pe);
  expect_signal(3);
  shmem_signal_add(ctx, signal, 4, pe);
  expect_signal(7);
}

void use_all_operations(Actor& actor, long salt) {
  copy_words(actor, salt);
  copy_bytes(actor, static_cast<int>(salt));
  change_values(actor, &actor.slot->single);
  change_values(actor, &actor.slot->number);
  change_values(actor, &actor.slot->bits);
  change_values(actor, &actor.slot->long_bits);
  change_numbers(actor, &actor.slot->bits);
  change_numbers(actor, &actor.slot->long_bits);
  change_bits(actor, &actor.slot->bits);
  change_bits(actor, &actor.slot->long_bits);
  signal_with_data(actor, salt);
}

/// With every kind of context, by two threads at once. A private context is the thread's own.
void use_all_contexts(int target, SlotsOfPe* heap_slots, unsigned char* bytes) {
  const auto me = static_cast<std::size_t>(shmem_my_pe());
  const auto body = [&](std::size_t thread) {
    long salt = 10;
    for (const long options : {0L, long{SHMEM_CTX_SERIALIZED}, long{SHMEM_CTX_PRIVATE}, long{SHMEM_CTX_NOSTORE}, -1L}) {
      shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
      CHECK(options < 0 || shmem_ctx_create(options, &ctx) == 0);
      for (SlotsOfPe* slots : {heap_slots, global_slots}) {
        Actor actor{ctx, target, &slots[me][thread], bytes + (me * kThreads + thread) * kLarge};
        use_all_operations(actor, ++salt);
      }
      if (options >= 0) {
        shmem_ctx_destroy(ctx);
      }
    }
  };
  std::thread other(body, 1);
  body(0);
  other.join();
}

constexpr std::size_t kGroup = 3;
using Wait = void (*)(long* words, long value);

/// Waits for `kGroup` words that the previous actor changes, in all ways there are.
constexpr Wait kWaits[] = {
    [](long* words, long value) {
      for (std::size_t i = 0; i < kGroup; ++i) {
        shmem_long_wait_until(words + i, SHMEM_CMP_EQ, value);
      }
    },
    [](long* words, long value) { shmem_wait_until_all(words, kGroup, nullptr, SHMEM_CMP_EQ, value); },
    [](long* words, long value) { CHECK(shmem_wait_until_any(words, kGroup, nullptr, SHMEM_CMP_GE, value) < kGroup); },
    [](long* words, long value) {
      std::size_t found[kGroup];
      CHECK(shmem_wait_until_some(words, kGroup, found, nullptr, SHMEM_CMP_GE, value) > 0);
    },
    [](long* words, long value) {
      const long values[kGroup] = {value, value, value};
      shmem_wait_until_all_vector(words, kGroup, nullptr, SHMEM_CMP_EQ, values);
      CHECK(shmem_wait_until_any_vector(words, kGroup, nullptr, SHMEM_CMP_EQ, values) < kGroup);
      std::size_t found[kGroup];
      CHECK(shmem_wait_until_some_vector(words, kGroup, found, nullptr, SHMEM_CMP_EQ, values) == kGroup);
    },
    [](long* words, long value) {
      while (shmem_test(words, SHMEM_CMP_EQ, value) == 0) {
      }
    },
    [](long* words, long value) {
      while (shmem_test_all(words, kGroup, nullptr, SHMEM_CMP_EQ, value) == 0) {
      }
    },
    [](long* words, long value) {
      while (shmem_test_any(words, kGroup, nullptr, SHMEM_CMP_EQ, value) == SIZE_MAX) {
      }
    },
    [](long* words, long value) {
      std::size_t found[kGroup];
      while (shmem_test_some(words, kGroup, found, nullptr, SHMEM_CMP_EQ, value) != kGroup) {
      }
    },
    [](long* words, long value) {
      const long values[kGroup] = {value, value, value};
      std::size_t found[kGroup];
      while (shmem_test_all_vector(words, kGroup, nullptr, SHMEM_CMP_EQ, values) == 0 ||
             shmem_test_any_vector(words, kGroup, nullptr, SHMEM_CMP_EQ, values) == SIZE_MAX ||
             shmem_test_some_vector(words, kGroup, found, nullptr, SHMEM_CMP_EQ, values) == 0) {
      }
    },
    [](long* words, long value) {
      auto* signal = reinterpret_cast<std::uint64_t*>(words);
      CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, static_cast<std::uint64_t>(value)) != 0);
    },
};

/// The actors wait for each other in a ring. Collective calls of their team end, too.
void wait_for_others(shmem_team_t actors, long* words) {
  const int count = shmem_team_n_pes(actors);
  const int next = shmem_team_translate_pe(actors, (shmem_team_my_pe(actors) + 1) % count, SHMEM_TEAM_WORLD);
  long value = 100;
  for (const Wait wait : kWaits) {
    ++value;
    for (std::size_t i = 0; i < kGroup; ++i) {
      shmem_p(words + i, value, next);
    }
    wait(words, value);
    CHECK(shmem_team_sync(actors) == 0);
  }
  words[kGroup] = 1;
  CHECK(shmem_sum_reduce(actors, words + kGroup + 1, words + kGroup, 1) == 0 && words[kGroup + 1] == count);
}

/// A word that only the holder of the lock changes, by a get and a put.
void take_turns(shmem_team_t actors, int target) {
  constexpr int kTurns = 10;
  const long before = shmem_g(&counter, target);
  CHECK(shmem_team_sync(actors) == 0);
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn % 2 == 0) {
      shmem_set_lock(&lock);
    } else {
      while (shmem_test_lock(&lock) != 0) {
      }
    }
    shmem_p(&counter, shmem_g(&counter, target) + 1, target);
    shmem_clear_lock(&lock);
  }
  CHECK(shmem_team_sync(actors) == 0);
  CHECK(shmem_g(&counter, target) == before + long{kTurns} * shmem_team_n_pes(actors));
}

void act(int target, SlotsOfPe* slots, unsigned char* bytes, long* words) {
  shmem_team_t actors = computing_target::team_of_actors(target);
  global_done = 0;
  shmem_barrier_all();
  if (shmem_my_pe() == target) {
    computing_target::compute(global_done);
  } else {
    use_all_contexts(target, slots, bytes);
    wait_for_others(actors, words);
    take_turns(actors, target);
    computing_target::say_done(&global_done, target);
  }
  shmem_barrier_all();
  shmem_team_destroy(actors);
}

[[noreturn]] void never_end(bool by_exit) {
  shmem_barrier_all();
  std::printf("PE %d is there\n", shmem_my_pe());
  std::fflush(stdout);
  if (shmem_my_pe() == 0) {
    computing_target::compute(global_done);
  }
  if (by_exit && shmem_my_pe() == 1) {
    shmem_global_exit(7);
  }
  for (;;) {
    shmem_barrier_all();
  }
}

}  // namespace

PE_PART(progress) {
  int provided = 0;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
  const int pes = shmem_n_pes();
  CHECK(pes >= 3 && pes <= kMostPes);
  if (argc > 1) {
    never_end(std::strcmp(argv[1], "exit") == 0);
  }
  auto* const slots = static_cast<SlotsOfPe*>(shmem_calloc(kMostPes, sizeof *global_slots));
  auto* const bytes = static_cast<unsigned char*>(shmem_malloc(static_cast<std::size_t>(pes) * kThreads * kLarge));
  auto* const words = static_cast<long*>(shmem_calloc(kGroup + 2, sizeof(long)));
  for (const int target : {0, pes - 1}) {
    act(target, slots, bytes, words);
  }
  shmem_finalize();
  return 0;
}
