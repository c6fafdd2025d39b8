// SPDX-License-Identifier: Apache-2.0
// A PE that calls kv_shuffle as its argument says and prints the results. Start two of them.
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/kv/kv_pes.hpp"
#include "tests/unit/kv/http_client.hpp"

namespace kv_calls {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr shmemx_kv_cache_t kShape{nullptr, nullptr, SHMEMX_KV_APART, 2, 1, 8, 2, 16, 64};
constexpr std::size_t kBlockBytes = 4096;  // 2 x 16 x 64 elements of 2
constexpr std::size_t kCacheBytes = 8 * kBlockBytes;

struct Pe {
  int me = shmem_my_pe();
  std::byte* k = static_cast<std::byte*>(shmem_malloc(kCacheBytes));
  std::byte* v = static_cast<std::byte*>(shmem_malloc(kCacheBytes));
  shmemx_kv_op_t* op = nullptr;
};

int run(const Pe& pe, void* k, const Numbers& pairs, const Numbers& from, const Numbers& to) {
  shmemx_kv_plan_t* plan = nullptr;
  int result = shmemx_kv_plan_create_pairs(shmem_n_pes(), pe.me, pairs.data(), from.data(), to.data(),
                                           static_cast<std::int64_t>(from.size()), &plan);
  shmemx_kv_cache_t cache = kShape;
  cache.k = k;
  cache.v = pe.v;
  if (result == 0) {
    result = shmemx_kv_shuffle(pe.op, plan, &cache);
  }
  shmemx_kv_plan_destroy(plan);
  std::printf("PE %d: %d %s\n", pe.me, result, result != 0 ? shmemx_error_text() : "");
  return result;
}

/// PE 0 sends blocks 0 and 1 to blocks 6 and 7 of PE 1; true if they are there.
bool shuffle_works(const Pe& pe) {
  std::memset(pe.k, 1 + pe.me, kCacheBytes);
  std::memset(pe.v, 3 + pe.me, kCacheBytes);
  shmem_barrier_all();
  const int result = run(pe, pe.k, {1, 0, 0, 1}, {0, 1}, {6, 7});
  for (std::size_t i = 0; i < kCacheBytes; ++i) {
    const bool moved = pe.me == 1 && i >= 6 * kBlockBytes;
    if (pe.k[i] != std::byte(moved ? 1 : 1 + pe.me) || pe.v[i] != std::byte(moved ? 3 : 3 + pe.me)) {
      std::printf("PE %d: byte %zu is wrong\n", pe.me, i);
      return false;
    }
  }
  return result == 0;
}

struct Sequence {
  std::int64_t pe, tokens;
  Numbers blocks;
  std::vector<std::uint64_t> hashes;

  /// The value of all bytes of its block i, the same for equal hashes.
  std::byte content(std::size_t i) const {
    return std::byte(i < hashes.size() ? hashes[i] : 16 * static_cast<std::uint64_t>(blocks[0] + 1) + i);
  }
};

/// True if this PE's blocks of the placement hold the sequence.
bool is_whole(const Pe& pe, const Sequence& sequence, const shmemx_kv_placement_t& placement) {
  for (std::size_t i = 0; i < sequence.blocks.size(); ++i) {
    for (const std::byte* cache : {pe.k, pe.v}) {
      const std::vector<std::byte> right(kBlockBytes, sequence.content(i));
      if (std::memcmp(cache + static_cast<std::size_t>(placement.blocks[i]) * kBlockBytes, right.data(), kBlockBytes) !=
          0) {
        return false;
      }
    }
  }
  return true;
}

/// PE 0 has 80 tokens and PE 1 has 16. PE 1 already has the first block of the sequence that moves.
void balance(const Pe& pe) {
  const std::vector<Sequence> sequences{{0, 48, {5, 1, 6}, {9}}, {0, 32, {0, 7}, {9}}, {1, 16, {3}, {9}}};
  std::vector<shmemx_kv_sequence_t> given;
  for (const Sequence& one : sequences) {
    given.push_back({one.pe, one.tokens, one.blocks.data(), static_cast<std::int64_t>(one.blocks.size()),
                     one.hashes.data(), static_cast<std::int64_t>(one.hashes.size())});
    for (std::size_t i = 0; one.pe == pe.me && i < one.blocks.size(); ++i) {
      for (std::byte* cache : {pe.k, pe.v}) {
        std::memset(cache + static_cast<std::size_t>(one.blocks[i]) * kBlockBytes, static_cast<int>(one.content(i)),
                    kBlockBytes);
      }
    }
  }
  const shmemx_kv_planning_t planning{SHMEMX_KV_BALANCED, SHMEMX_KV_MOVE, 2, 0, kShape.blocks, kShape.page_size, 0};
  shmemx_kv_plan_t* plan = nullptr;
  shmemx_kv_cache_t cache = kShape;
  cache.k = pe.k;
  cache.v = pe.v;
  if (shmemx_kv_plan_balance(given.data(), given.size(), &planning, &plan) != 0 ||
      shmemx_kv_shuffle(pe.op, plan, &cache) != 0) {
    std::printf("PE %d: %s\n", pe.me, shmemx_error_text());
  }
  for (std::size_t i = 0; plan != nullptr && i < sequences.size(); ++i) {
    shmemx_kv_placement_t placement{};
    shmemx_kv_plan_placement(plan, i, &placement);
    if (placement.pe == pe.me) {
      std::printf("PE %d: sequence %zu is %s\n", pe.me, i, is_whole(pe, sequences[i], placement) ? "whole" : "lost");
    }
  }
  shmemx_kv_plan_destroy(plan);
}

/// Two shuffles that work and one that does not; then the numbers, and PE 0's page.
void count(const Pe& pe) {
  for (const char* address : {"0", "0"}) {
    std::printf("PE %d: metrics %d\n", pe.me, shmemx_kv_op_metrics(pe.op, address));
  }
  run(pe, pe.k, {1, 0, 0, 1}, {0, 1}, {6, 7});
  run(pe, pe.k, {1, 0, 0, 1}, {0, 8}, {0, 1});
  const std::array<shmemx_kv_move_t, 3> moves{{{0, 3, 1, 5}, {0, 4, 0, 6}, {1, 0, 1, 2}}};
  shmemx_kv_plan_t* plan = nullptr;
  shmemx_kv_cache_t cache = kShape;
  cache.k = pe.k;
  cache.v = pe.v;
  shmemx_kv_plan_create(moves.data(), moves.size(), SHMEMX_KV_COPY, &plan);
  int done = shmemx_kv_shuffle_start(pe.op, plan, &cache);
  done = done == 0 ? shmemx_kv_shuffle_wait(pe.op) : done;
  shmemx_kv_plan_destroy(plan);
  shmemx_kv_stats_t stats{};
  shmemx_kv_op_stats(pe.op, &stats);
  std::printf(
      "PE %d: %d, %lu shuffles, %lu blocks, %lu bytes, %lu invalid, %lu aborted, %lu dead, %lu late, %lu other, took "
      "%s time\n",
      pe.me, done, stats.shuffles, stats.sent_blocks, stats.sent_bytes, stats.failed_invalid, stats.failed_aborted,
      stats.failed_dead, stats.failed_timeout, stats.failed_other, stats.time_ns > 0 ? "some" : "no");
  if (pe.me == 0 && stats.metrics_port != 0) {
    std::istringstream answer(
        exchange_test::ask(stats.metrics_port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    for (std::string line; std::getline(answer, line);) {
      std::printf("page: %s\n", line.c_str());
    }
  }
}

void call(Pe& pe, const std::string& how) {
  std::vector<std::byte> elsewhere(kCacheBytes);  // not a static array: that would be symmetric
  if (how == "two-senders") {
    run(pe, pe.k, {1, 0, 0, 0}, {0}, {1});
  } else if (how == "bad-block") {
    run(pe, pe.k, {1, 0, 0, 1}, {0, 8}, {0, 1});
  } else if (how == "not-symmetric") {
    run(pe, pe.me == 1 ? elsewhere.data() : pe.k, {1, 0, 0, 1}, {0}, {1});
  } else if (how == "no-cores" || how == "other-cores") {
    const shmemx_kv_options_t options{how == "no-cores" ? -1 : 2 + 2 * pe.me, SHMEMX_KV_PATH_AUTO, 0};
    shmemx_kv_op_t* other = nullptr;
    const int result = shmemx_kv_op_create(SHMEM_TEAM_WORLD, &options, &other);
    std::printf("PE %d: %d %s\n", pe.me, result, shmemx_error_text());
  } else if (how == "balance") {
    balance(pe);
  } else if (how == "count") {
    count(pe);
  } else if (how == "null") {
    std::printf("PE %d: create %d, destroy %d\n", pe.me, shmemx_kv_op_create(SHMEM_TEAM_WORLD, nullptr, nullptr),
                shmemx_kv_op_destroy(nullptr));
    shmemx_kv_stats_t stats{};
    std::printf("PE %d: stats %d %d, metrics %d %d\n", pe.me, shmemx_kv_op_stats(nullptr, &stats),
                shmemx_kv_op_stats(pe.op, nullptr), shmemx_kv_op_metrics(nullptr, "0"),
                shmemx_kv_op_metrics(pe.op, nullptr));
    const int result = shmemx_kv_shuffle(nullptr, nullptr, &kShape);
    std::printf("PE %d: %d %s\n", pe.me, result, shmemx_error_text());
  } else if (how == "dies") {
    if (pe.me == 1) {
      ::raise(SIGKILL);
    }
    run(pe, pe.k, {1, 0, 0, 1}, {0}, {1});
  } else if (how == "late") {
    if (pe.me == 1) {
      ::pause();
    }
    run(pe, pe.k, {1, 0, 0, 1}, {0}, {1});
    std::_Exit(1);  // which ends the job
  }
}

}  // namespace

int run(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  shmem_init();
  Pe pe;
  const shmemx_kv_options_t options{4, SHMEMX_KV_PATH_AUTO, 0};
  if (shmemx_kv_op_create(SHMEM_TEAM_WORLD, &options, &pe.op) != 0) {
    return 1;
  }
  if (argc > 1) {
    call(pe, argv[1]);
  }
  shmem_barrier_all();
  const bool good = shuffle_works(pe);
  std::printf("PE %d: %s\n", pe.me, good ? "works" : "does not work");
  shmemx_kv_op_destroy(pe.op);
  shmem_finalize();
  return good ? 0 : 1;
}

}  // namespace kv_calls
