// SPDX-License-Identifier: Apache-2.0
// A PE of a job on several nodes: net ACTION [FILE]. Prints "PE n ready" when the job has started.
#include <malloc.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

constexpr int kWords = 512;
long global_word = -1;
long global_words[kWords];

int right() {
  return (shmem_my_pe() + 1) % shmem_n_pes();
}
int left() {
  return (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
}

void say(const char* what, long number = -1) {
  if (number < 0) {
    std::printf("PE %d %s\n", shmem_my_pe(), what);
  } else {
    std::printf("PE %d %s %ld\n", shmem_my_pe(), what, number);
  }
  std::fflush(stdout);
}

void check(bool good, const char* what) {
  if (good) {
    return;
  }
  say(what);
  shmem_global_exit(9);
}

bool exists(const std::string& file) {
  return ::access(file.c_str(), F_OK) == 0;
}

/// The machine's clock in seconds, which all nodes of a test share.
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Allocates and frees pSync arrays at always different addresses: the library must not remember the freed ones.
void check_psyncs() {
  constexpr int kTimes = 1000;
  const auto used = [] { return ::mallinfo2().uordblks; };
  std::size_t before = 0;
  for (int i = 0; i < kTimes; ++i) {
    const std::size_t skipped = static_cast<std::size_t>(i) * SHMEM_BARRIER_SYNC_SIZE;
    auto* block = static_cast<long*>(shmem_malloc((skipped + SHMEM_BARRIER_SYNC_SIZE) * sizeof(long)));
    for (int word = 0; word < SHMEM_BARRIER_SYNC_SIZE; ++word) {
      block[skipped + static_cast<std::size_t>(word)] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    shmem_barrier(0, 0, shmem_n_pes(), block + skipped);
    shmem_free(block);
    if (i == kTimes / 10) {
      before = used();
    }
  }
  check(used() < before + std::size_t{100} * kTimes, "remembers pSyncs of freed blocks");
}

/// Each PE puts heap and global words to its right neighbour, and adds to a count at PE 0.
void use_all_memory(long salt) {
  const int me = shmem_my_pe();
  auto* words = static_cast<long*>(shmem_calloc(kWords, sizeof(long)));
  auto* count = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  std::vector<long> mine(kWords);
  for (int i = 0; i < kWords; ++i) {
    mine[static_cast<std::size_t>(i)] = salt + long{me} * kWords + i;
  }
  shmem_long_put(words, mine.data(), kWords, right());
  shmem_long_put(global_words, mine.data(), kWords, right());
  shmem_long_p(&global_word, salt + me, right());
  shmem_long_atomic_add(count, me + 1, 0);
  shmem_barrier_all();
  for (int i = 0; i < kWords; ++i) {
    check(words[i] == salt + long{left()} * kWords + i, "has other words in its heap");
    check(global_words[i] == words[i], "has other global words");
  }
  check(global_word == salt + left(), "has another global word");
  check(shmem_long_g(&global_word, right()) == salt + me, "reads another global word");
  const long pes = shmem_n_pes();
  check(shmem_long_atomic_fetch(count, 0) == pes * (pes + 1) / 2, "counts another number");
  shmem_barrier_all();
  shmem_free(count);
  shmem_free(words);
}

/// Puts and barriers until the file exists.
void traffic(const std::string& file) {
  auto* word = static_cast<long*>(shmem_calloc(2, sizeof(long)));
  for (long round = 1;; ++round) {
    const bool over = shmem_my_pe() == 0 && exists(file);
    if (over) {
      for (int pe = 0; pe < shmem_n_pes(); ++pe) {
        shmem_long_p(word + 1, round, pe);
      }
    }
    shmem_long_p(word, round, right());
    shmem_barrier_all();
    check(*word == round, "has the word of another round");
    const bool end = word[1] != 0;
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
      say("round", round);
    }
    if (end) {
      break;
    }
  }
  say("is through");
}

void large() {
  constexpr std::size_t kBytes = 8 << 20;
  auto* to = static_cast<unsigned char*>(shmem_malloc(kBytes));
  std::vector<unsigned char> from(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) {
    from[i] = static_cast<unsigned char>(i * 31 + i / 4096 + static_cast<std::size_t>(shmem_my_pe()));
  }
  shmem_barrier_all();
  shmem_putmem(to, from.data(), kBytes, right());
  shmem_barrier_all();
  std::vector<unsigned char> back(kBytes);
  shmem_getmem(back.data(), to, kBytes, right());
  check(std::memcmp(back.data(), from.data(), kBytes) == 0, "reads other bytes");
  shmem_barrier_all();
  say("is through");
}

/// Puts words to the other PEs, to addresses that overlap the source's.
void shift() {
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    if (pe != shmem_my_pe()) {
      shmem_long_put(global_words + 1, global_words, kWords - 1, pe);
    }
  }
  shmem_barrier_all();
  say("is through");
}

/// PE 1 makes no call of the library, from when it creates the file until PE 0, which gets from it, was answered. For
/// two seconds if it has no progress thread, which would answer.
void compute(const std::string& file) {
  auto* word = static_cast<long*>(shmem_malloc(sizeof(long)));
  auto* back = static_cast<double*>(shmem_malloc(sizeof(double)));
  *word = 17;
  shmem_barrier_all();
  shmem_getmem(word + 0, word, sizeof(long), right());  // makes the connection
  shmem_barrier_all();
  double answered = 0;
  if (shmem_my_pe() == 1) {
    shmem_quiet();
    std::ofstream(file) << "computes\n";
    const char* const thread = std::getenv("SHMEM_PROGRESS_THREAD");
    const double end = now() + (thread != nullptr ? 2 : 60);
    while (!exists(file + ".answered") && now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    *back = now();
  } else {
    while (!exists(file)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    check(shmem_long_g(word, 1) == 17, "reads another word");
    answered = now();
    std::ofstream(file + ".answered") << "answered\n";
  }
  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    say(answered < shmem_double_g(back, 1) ? "was answered meanwhile" : "was answered after it");
  }
}

/// PE 0 polls words of PE 1, on the same node, until PE 2 has got an answer from PE 0 and stores that at PE 1.
void poll() {
  static long word = 17;
  static long told = 0;
  static long lock = 0;
  for (long way = 1; way <= 4; ++way) {
    shmem_barrier_all();
    if (shmem_my_pe() == 2) {
      if (way == 4) {
        shmem_set_lock(&lock);
      }
      shmem_long_p(&told, -way, 1);
      shmem_quiet();
      while (shmem_long_g(&word, 0) != 17 + way) {
      }
      shmem_long_p(&told, way, 1);
      if (way == 4) {
        shmem_clear_lock(&lock);
      }
    }
    if (shmem_my_pe() == 0) {
      while (shmem_long_g(&told, 1) != -way) {
      }
      word = 17 + way;
      long seen = 0;
      if (way == 1) {
        while (shmem_long_g(&told, 1) != way) {
        }
      }
      while (way == 2 && seen != way) {
        shmem_getmem(&seen, &told, sizeof seen, 1);
      }
      if (way == 3) {
        while (shmem_long_atomic_fetch(&told, 1) != way) {
        }
      }
      if (way == 4) {
        while (shmem_test_lock(&lock) != 0) {
        }
        shmem_clear_lock(&lock);
      }
    }
  }
  shmem_barrier_all();
  say("is through");
}

/// Copies 64 MiB from or to the next PE without end.
void copy_for_ever(bool get) {
  constexpr std::size_t kBytes = 64 << 20;
  auto* there = static_cast<unsigned char*>(shmem_malloc(kBytes));
  std::vector<unsigned char> here(kBytes);
  say("copies");
  for (;;) {
    if (get) {
      shmem_getmem(here.data(), there, kBytes, right());
    } else {
      shmem_putmem(there, here.data(), kBytes, right());
    }
  }
}

void run(const std::string& action, const std::string& file) {
  pe_checks::act(action, {{"nothing", [] {}},
                          {"hello", [&] { use_all_memory(0); }},
                          {"large", [&] { large(); }},
                          {"traffic", [&] { traffic(file); }},
                          {"compute", [&] { compute(file); }},
                          {"poll", [&] { poll(); }},
                          {"shift", [&] { shift(); }},
                          {"psyncs",
                           [&] {
                             check_psyncs();
                             say("is through");
                           }},
                          {"mistake", [&] { shmem_my_pe() == 3 ? shmem_sync_all() : shmem_barrier_all(); }},
                          // Without end: the test kills or stops PE 1, which must end the others.
                          {"get",
                           [&] {
                             for (;;) {
                               shmem_long_g(&global_word, right());
                             }
                           }},
                          {"put",
                           [&] {
                             for (;;) {
                               shmem_long_p(&global_word, 1, right());
                             }
                           }},
                          {"get_large", [&] { copy_for_ever(true); }},
                          {"put_large", [&] { copy_for_ever(false); }},
                          {"add",
                           [&] {
                             for (;;) {
                               shmem_long_atomic_add(&global_word, 1, right());
                             }
                           }},
                          {"barrier",
                           [&] {
                             if (shmem_my_pe() == 1) {
                               ::pause();
                             }
                             shmem_barrier_all();
                           }},
                          {"wait", [&] {
                             if (shmem_my_pe() == 1) {
                               ::pause();
                             }
                             shmem_long_wait_until(&global_word, SHMEM_CMP_EQ, 1);
                           }}});
}

}  // namespace

PE_PART(net) {
  if (argc < 2) {
    return 2;
  }
  const std::string action = argv[1];
  const std::string file = argc > 2 ? argv[2] : "";
  if (action == "again") {
    for (int start = 0; start < 3; ++start) {
      shmem_init();
      use_all_memory(1000L * start);
      say("was there in start", start);
      shmem_finalize();
    }
    return 0;
  }
  shmem_init();
  shmem_barrier_all();
  say("ready");
  run(action, file);
  shmem_finalize();
  return 0;
}
