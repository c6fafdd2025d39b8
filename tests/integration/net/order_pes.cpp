// SPDX-License-Identifier: Apache-2.0
// The order of remote operations, as a PE sees it that computes and makes no calls: it loads a flag, and then data that
// were changed before the flag was. Threads of the other PEs change both, in every way that OpenSHMEM 1.6 orders. On at
// least 3 PEs.
//
//   order LOOKS        each way goes on until the computing PE has seen that many values of its flag
#include "tests/integration/net/computing_target.hpp"

namespace {

using computing_target::look;

constexpr std::size_t kWords = 8;
constexpr int kMostPes = 8;
constexpr int kThreads = 2;
std::uint64_t looks = 0;

struct Channel {
  std::uint64_t data[kWords];
  alignas(64) std::uint64_t flag;
  alignas(64) std::uint64_t seen;  // the target's: the number of values of the flag
};

/// Where a thread changes data and then the flag, in round after round.
struct Writer {
  shmem_ctx_t ctx;
  int target;
  Channel* channel;
};

std::array<std::uint64_t, kWords> words_of(std::uint64_t round) {
  std::array<std::uint64_t, kWords> words;
  words.fill(round);
  return words;
}

using Way = void (*)(const Writer& writer, std::uint64_t round);

// After each round there is a fence: the next round's data do not arrive before this round's.
constexpr Way kWays[] = {
    [](const Writer& w, std::uint64_t round) {  // put, fence, put
      shmem_put(w.ctx, w.channel->data, words_of(round).data(), kWords, w.target);
      shmem_ctx_fence(w.ctx);
      shmem_p(w.ctx, &w.channel->flag, round, w.target);
    },
    [](const Writer& w, std::uint64_t round) {  // nonblocking put, fence, atomic
      const auto words = words_of(round);
      shmem_put_nbi(w.ctx, w.channel->data, words.data(), kWords, w.target);
      shmem_ctx_fence(w.ctx);
      shmem_atomic_set(w.ctx, &w.channel->flag, round, w.target);
      shmem_ctx_quiet(w.ctx);
    },
    [](const Writer& w, std::uint64_t round) {  // nonblocking put, quiet, and the flag on another context
      const auto words = words_of(round);
      shmem_put_nbi(w.ctx, w.channel->data, words.data(), kWords, w.target);
      shmem_ctx_quiet(w.ctx);
      shmem_p(&w.channel->flag, round, w.target);
      shmem_fence();
    },
    [](const Writer& w, std::uint64_t round) {  // the same for this PE alone
      const auto words = words_of(round);
      shmem_put_nbi(w.ctx, w.channel->data, words.data(), kWords, w.target);
      shmem_ctx_pe_quiet(w.ctx, &w.target, 1);
      shmem_atomic_inc(w.ctx, &w.channel->flag, w.target);
    },
    [](const Writer& w, std::uint64_t round) {
      shmem_put_signal(w.ctx, w.channel->data, words_of(round).data(), kWords, &w.channel->flag, round,
                       SHMEM_SIGNAL_SET, w.target);
    },
    [](const Writer& w, std::uint64_t round) {
      const auto words = words_of(round);
      shmem_put_signal_nbi(w.ctx, w.channel->data, words.data(), kWords, &w.channel->flag, 1, SHMEM_SIGNAL_ADD,
                           w.target);
      shmem_ctx_quiet(w.ctx);
    },
    [](const Writer& w, std::uint64_t round) {  // atomics, fence, signal
      for (std::uint64_t& word : w.channel->data) {
        shmem_atomic_inc(w.ctx, &word, w.target);
      }
      shmem_ctx_fence(w.ctx);
      shmem_signal_set(w.ctx, &w.channel->flag, round, w.target);
    },
    [](const Writer& w, std::uint64_t /*round*/) {  // fetching atomics, which are complete when they return
      for (std::uint64_t& word : w.channel->data) {
        shmem_atomic_fetch_add(w.ctx, &word, std::uint64_t{1}, w.target);
      }
      shmem_signal_add(w.ctx, &w.channel->flag, 1, w.target);
    },
    [](const Writer& w, std::uint64_t round) {  // nonblocking fetching atomics, quiet, put
      std::array<std::uint64_t, kWords> before{};
      for (std::size_t i = 0; i < kWords; ++i) {
        shmem_atomic_fetch_inc_nbi(w.ctx, &before[i], &w.channel->data[i], w.target);
      }
      shmem_ctx_quiet(w.ctx);
      CHECK(before == words_of(round - 1));
      shmem_p(w.ctx, &w.channel->flag, round, w.target);
    },
    [](const Writer& w, std::uint64_t round) {  // strided puts and single words, fence, put of a flag
      shmem_iput(w.ctx, w.channel->data, words_of(round).data(), 2, 1, kWords / 2, w.target);
      for (std::size_t i = 1; i < kWords; i += 2) {
        shmem_p(w.ctx, &w.channel->data[i], round, w.target);
      }
      shmem_ctx_fence(w.ctx);
      shmem_put(w.ctx, &w.channel->flag, &round, 1, w.target);
    },
};
constexpr std::size_t kNumberOfWays = std::size(kWays);
using ThreadChannels = std::array<Channel, kNumberOfWays>;
using PeChannels = std::array<ThreadChannels, kThreads>;
using Channels = std::array<PeChannels, kMostPes>;

Channels channels;
std::uint64_t done;

/// The target's view of a channel.
struct Seen {
  std::uint64_t flag = 0;
  std::array<std::uint64_t, kWords> data{};

  void look_at(Channel& channel) {
    const std::uint64_t now = look(channel.flag);
    CHECK(now >= flag);
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint64_t word = look(channel.data[i]);
      CHECK(word >= now && word >= data[i]);
      data[i] = word;
    }
    if (now != flag) {
      flag = now;
      std::atomic_ref(channel.seen).fetch_add(1, std::memory_order_release);  // pairs with the writer's fetch
    }
  }
};

void watch_all() {
  std::vector<Seen> seen(kMostPes * kThreads * kNumberOfWays);
  computing_target::compute(done, [&seen] {
    auto view = seen.begin();
    for (PeChannels& of_pe : channels) {
      for (ThreadChannels& of_thread : of_pe) {
        for (Channel& channel : of_thread) {
          (view++)->look_at(channel);
        }
      }
    }
  });
}

/// In the default context and in a private one.
void write_all(int target, int thread) {
  shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
  CHECK(thread == 0 || shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
  auto& mine = channels[static_cast<std::size_t>(shmem_my_pe())][static_cast<std::size_t>(thread)];
  for (std::size_t way = 0; way < kNumberOfWays; ++way) {
    const Writer writer{ctx, target, &mine[way]};
    for (std::uint64_t round = 1; round % 4 != 0 || shmem_atomic_fetch(ctx, &mine[way].seen, target) < looks; ++round) {
      kWays[way](writer, round);
      shmem_ctx_fence(ctx);
    }
  }
  shmem_ctx_quiet(ctx);
  if (thread != 0) {
    shmem_ctx_destroy(ctx);
  }
}

}  // namespace

PE_PART(order) {
  int provided = 0;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
  looks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const int pes = shmem_n_pes();
  CHECK(pes >= 3 && pes <= kMostPes);
  for (const int target : {0, pes - 1}) {
    channels = {};
    done = 0;
    shmem_barrier_all();
    if (shmem_my_pe() == target) {
      watch_all();
    } else {
      std::vector<std::thread> others;
      for (int thread = 1; thread < kThreads; ++thread) {
        others.emplace_back(write_all, target, thread);
      }
      write_all(target, 0);
      for (std::thread& other : others) {
        other.join();
      }
      computing_target::say_done(&done, target);
    }
    shmem_barrier_all();
  }
  std::printf("PE %d: all in order\n", shmem_my_pe());
  shmem_finalize();
  return 0;
}
