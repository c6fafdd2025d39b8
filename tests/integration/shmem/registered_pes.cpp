// SPDX-License-Identifier: Apache-2.0
// PEs that register memory of their own and use it: registered KIND [nodes]. Each checks what it can, and prints
// how many checks failed.
#include "tests/integration/shmem/registered_memory.hpp"

namespace {

using registered::kBytes;
using registered::me;
using registered::Memory;
using registered::next;
using registered::pes;

Memory::Kind kind_of(std::string_view name) {
  if (name == "mixed") {
    return me() % 2 == 0 ? Memory::Kind::kGiven : Memory::Kind::kPrivate;
  }
  if (name == "last") {
    return me() == pes() - 1 ? Memory::Kind::kPrivate : Memory::Kind::kGiven;
  }
  if (name == "found") {
    return Memory::Kind::kFound;
  }
  if (name == "named") {
    return Memory::Kind::kNamed;
  }
  return name == "private" ? Memory::Kind::kPrivate : Memory::Kind::kGiven;
}

std::uint64_t pattern(int pe, std::size_t index) {
  return static_cast<std::uint64_t>(pe + 1) * 0x9e3779b97f4a7c15U + index * 0x100000001b3U;
}

void fill(std::uint64_t* words, std::size_t count, int pe) {
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = pattern(pe, i);
  }
}
bool holds(const std::uint64_t* words, std::size_t count, int pe) {
  for (std::size_t i = 0; i < count; ++i) {
    if (words[i] != pattern(pe, i)) {
      return false;
    }
  }
  return true;
}

/// Large and small puts and gets, blocking or not, by a context or not.
void copy_bytes(const Memory& memory) {
  constexpr std::size_t kWords = kBytes / 4 / sizeof(std::uint64_t);
  const int from = (me() + pes() - 1) % pes();
  std::vector<std::uint64_t> data(kWords);
  fill(data.data(), kWords, me());
  auto* words = memory.at<std::uint64_t>();
  std::memset(words, 0, memory.bytes());
  shmem_barrier_all();
  shmem_putmem(words, data.data(), kWords * sizeof(std::uint64_t), next());
  shmem_uint64_put_nbi(words + kWords, data.data(), kWords, next());
  shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  shmem_ctx_uint64_put(ctx, words + 2 * kWords, data.data(), 5, next());
  shmem_uint64_p(words + 3 * kWords, pattern(me(), 0), next());
  shmem_putmem(reinterpret_cast<std::byte*>(words) + memory.bytes() - 3, "xyz", 3, next());
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
  CHECK(holds(words, kWords, from));
  CHECK(holds(words + kWords, kWords, from));
  CHECK(holds(words + 2 * kWords, 5, from));
  CHECK(words[2 * kWords + 5] == 0);
  CHECK(words[3 * kWords] == pattern(from, 0));
  CHECK(std::memcmp(reinterpret_cast<std::byte*>(words) + memory.bytes() - 3, "xyz", 3) == 0);

  std::vector<std::uint64_t> got(2 * kWords);
  shmem_getmem(got.data(), words, kWords * sizeof(std::uint64_t), next());
  shmem_uint64_get_nbi(got.data() + kWords, words + kWords, kWords, next());
  shmem_quiet();
  CHECK(holds(got.data(), kWords, me()));
  CHECK(holds(got.data() + kWords, kWords, me()));
  CHECK(shmem_uint64_g(words + 3 * kWords, next()) == pattern(me(), 0));
  shmem_ctx_destroy(ctx);
  shmem_barrier_all();
}

/// Strided copies, of more blocks than one system call takes.
void copy_blocks(const Memory& memory) {
  constexpr std::size_t kCount = 3000;
  const int from = (me() + pes() - 1) % pes();
  std::vector<std::uint64_t> data(kCount);
  fill(data.data(), kCount, me());
  auto* words = memory.at<std::uint64_t>();
  std::memset(words, 0, memory.bytes());
  shmem_barrier_all();
  shmem_uint64_iput(words, data.data(), 3, 1, kCount, next());
  shmem_barrier_all();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    wrong += words[3 * i] != pattern(from, i) || words[3 * i + 1] != 0 ? 1 : 0;
  }
  CHECK(wrong == 0);
  std::vector<std::uint64_t> got(2 * kCount);
  shmem_uint64_iget(got.data(), words, 2, 3, kCount, next());
  for (std::size_t i = 0; i < kCount; ++i) {
    wrong += got[2 * i] != pattern(me(), i) || got[2 * i + 1] != 0 ? 1 : 0;
  }
  CHECK(wrong == 0);
  shmem_uint64_ibget(got.data(), words, 3, 6, 2, 100, next());
  CHECK(got[297] == pattern(me(), 198) && got[298] == 0);
  shmem_barrier_all();
}

/// Data in the memory, the signal in the symmetric heap.
void signal_from_heap(const Memory& memory) {
  auto* signal = pe_checks::allocate<std::uint64_t>();
  std::vector<std::uint64_t> data(1000);
  fill(data.data(), data.size(), me());
  shmem_barrier_all();
  shmem_uint64_put_signal(memory.at<std::uint64_t>(), data.data(), data.size(), signal, 1, SHMEM_SIGNAL_ADD, next());
  shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
  CHECK(holds(memory.at<std::uint64_t>(), data.size(), (me() + pes() - 1) % pes()));
  shmem_barrier_all();
  shmem_free(signal);
}

/// What loads and stores are needed for.
void change_words(const Memory& memory) {
  auto* words = memory.at<std::uint64_t>();
  std::memset(words, 0, memory.bytes());
  shmem_barrier_all();
  for (int pe = 0; pe < pes(); ++pe) {
    for (int i = 0; i < 100; ++i) {
      shmem_uint64_atomic_inc(words, pe);
    }
    CHECK(shmem_uint64_atomic_fetch_add(words + 1, 1, pe) < static_cast<std::uint64_t>(pes()));
  }
  shmem_barrier_all();
  CHECK(words[0] == 100 * static_cast<std::uint64_t>(pes()));
  CHECK(shmem_uint64_atomic_fetch(words + 1, next()) == static_cast<std::uint64_t>(pes()));
  CHECK(shmem_uint64_atomic_compare_swap(words + 2 + me(), 0, 7, next()) == 0);
  // The signal, and what the PE waits for, are in the memory, too.
  shmem_uint64_p(words + 100, pattern(me(), 1), next());
  shmem_fence();
  shmem_signal_add(words + 101, 3, next());
  CHECK(shmem_signal_wait_until(words + 101, SHMEM_CMP_EQ, 3) == 3);
  CHECK(words[100] == pattern((me() + pes() - 1) % pes(), 1));
  shmem_uint64_p(words + 102, 1, next());
  shmem_uint64_wait_until(words + 102, SHMEM_CMP_NE, 0);
  auto* lock = reinterpret_cast<long*>(words + 103);
  shmem_set_lock(lock);
  shmem_uint64_p(words + 104, shmem_uint64_g(words + 104, 0) + 1, 0);
  shmem_clear_lock(lock);
  shmem_barrier_all();
  CHECK(me() != 0 || words[104] == static_cast<std::uint64_t>(pes()));
}

void collect(const Memory& memory) {
  auto* words = memory.at<std::uint64_t>();
  constexpr std::size_t kCount = 5000;
  fill(words, kCount, me());
  CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, words + kCount, words, kCount * sizeof *words, pes() - 1) == 0);
  CHECK(holds(words + kCount, kCount, pes() - 1));
  CHECK(shmem_uint64_max_reduce(SHMEM_TEAM_WORLD, words + 2 * kCount, words, 1) == 0);
  std::uint64_t most = 0;
  for (int pe = 0; pe < pes(); ++pe) {
    most = std::max(most, pattern(pe, 0));
  }
  CHECK(words[2 * kCount] == most);
}

/// The same object on each PE, for the host and for cores.
void look_through_pointers(const Memory& memory, bool several_nodes) {
  auto* words = memory.at<std::uint64_t>();
  words[0] = pattern(me(), 0);
  shmem_barrier_all();
  struct Seen {
    const std::uint64_t* words;
    bool good;
  } seen{words, true};
  for (int pe = 0; pe < pes(); ++pe) {
    const auto* theirs = static_cast<const std::uint64_t*>(shmem_ptr(words, pe));
    CHECK(theirs != nullptr || several_nodes);
    CHECK(theirs == nullptr || *theirs == pattern(pe, 0));
    CHECK(shmem_addr_accessible(words, pe) == 1);
  }
  const auto kernel = [](shmemx_core_t* core, void* argument) {
    auto& looked = *static_cast<Seen*>(argument);
    for (int pe = 0; pe < shmem_n_pes(); ++pe) {
      const auto* theirs = static_cast<const std::uint64_t*>(shmemx_core_ptr(core, looked.words + 1, pe));
      looked.good = looked.good && theirs == static_cast<const std::uint64_t*>(shmem_ptr(looked.words + 1, pe));
    }
  };
  CHECK(shmemx_launch(1, kernel, &seen) == 0);
  CHECK(seen.good);
  shmem_barrier_all();
}

/// Blocks go round, from and to registered memory.
void shuffle(const Memory& memory) {
  shmemx_kv_op_t* op = nullptr;
  CHECK(shmemx_kv_op_create(SHMEM_TEAM_WORLD, nullptr, &op) == 0);
  shmemx_kv_cache_t cache{};
  cache.k = memory.at<void>();
  cache.format = SHMEMX_KV_BY_BLOCK;
  cache.element_size = 2;
  cache.layers = 2;
  cache.blocks = 8;
  cache.kv_heads = 4;
  cache.page_size = 16;
  cache.head_dim = 32;
  constexpr std::size_t kWords = std::size_t{2} * 2 * 4 * 16 * 32 * 2 / sizeof(std::uint64_t);  // of a block
  auto* words = memory.at<std::uint64_t>();
  for (int block = 0; block < 8; ++block) {
    fill(words + static_cast<std::size_t>(block) * kWords, kWords, 10 * me() + block);
  }
  std::vector<shmemx_kv_move_t> moves;
  for (int pe = 0; pe < pes(); ++pe) {
    for (int block = 0; block < 8; ++block) {
      moves.push_back({pe, block, (pe + 1) % pes(), 7 - block});
    }
  }
  shmemx_kv_plan_t* plan = nullptr;
  CHECK(shmemx_kv_plan_create(moves.data(), moves.size(), SHMEMX_KV_COPY, &plan) == 0);
  CHECK(shmemx_kv_shuffle(op, plan, &cache) == 0);
  const int from = (me() + pes() - 1) % pes();
  for (int block = 0; block < 8; ++block) {
    CHECK(holds(words + static_cast<std::size_t>(block) * kWords, kWords, 10 * from + 7 - block));
  }
  cache.blocks = 1 << 20;
  CHECK(shmemx_kv_shuffle(op, plan, &cache) < 0);
  shmemx_kv_plan_destroy(plan);
  CHECK(shmemx_kv_op_destroy(op) == 0);
}

/// `what` fails with this text; errors return.
template <typename Call>
void refused(const char* text, Call call) {
  call();
  CHECK(shmemx_take_error() == -EINVAL);
  const bool said = std::string_view(shmemx_error_text()).find(text) != std::string_view::npos;
  CHECK(said);
}

/// Between PEs of one node.
void refuse_words_of_private(const Memory& memory) {
  auto* words = memory.at<std::uint64_t>();
  constexpr const char* kText = "private to its process: only puts and gets reach it";
  CHECK(shmem_ptr(words, me()) == words);
  CHECK(shmem_ptr(words, next()) == nullptr);
  CHECK(shmem_addr_accessible(words, next()) == 1);
  shmem_uint64_atomic_inc(words, me());
  CHECK(shmemx_take_error() == 0);
  refused(kText, [&] { shmem_uint64_atomic_inc(words, next()); });
  refused(kText, [&] { shmem_signal_set(words, 1, next()); });
  refused("reach beyond its end", [&] { shmem_putmem(words, words, memory.bytes() + 1, next()); });
  shmem_barrier_all();
}

/// All PEs refuse the same call, also those that could load the memory of all others: no PE waits for one that has not
/// begun.
void refuse_collectives(const Memory& memory) {
  auto* words = memory.at<std::uint64_t>();
  constexpr const char* kText = "private to its process: only puts and gets reach it";
  refused(kText, [&] { shmem_broadcastmem(SHMEM_TEAM_WORLD, words + 4, words, 8, 0); });
  refused(kText, [&] { shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, words + 4, words, 1); });
  refused(kText, [&] { shmem_fcollectmem(SHMEM_TEAM_WORLD, words + 4, words, 8); });
  shmem_barrier_all();
}

void use(std::string_view kind, bool several_nodes) {
  const bool is_shared = kind != "private" && kind != "mixed" && kind != "last";
  const Memory memory(kind_of(kind), kBytes, is_shared ? 4096 + 128 : 0);
  const Memory second(kind_of(kind), 8192);
  CHECK(memory.add() == 0);
  CHECK(second.add() == 0);
  copy_bytes(memory);
  copy_blocks(memory);
  signal_from_heap(memory);
  if (is_shared) {
    look_through_pointers(memory, several_nodes);
  }
  if (is_shared || (several_nodes && pes() == 2)) {
    change_words(memory);
  }
  shuffle(memory);
  if (is_shared || (several_nodes && pes() == 2)) {
    collect(memory);
  }
  if (!is_shared && pes() > (several_nodes ? 2 : 1)) {
    refuse_collectives(memory);
  }
  if (kind == "private" && !several_nodes && pes() > 1) {
    refuse_words_of_private(memory);
  }
  CHECK(memory.remove() == 0);
  CHECK(shmem_addr_accessible(memory.at<void>(), next()) == 0);
  CHECK(shmem_addr_accessible(second.at<void>(), next()) == 1);
  CHECK(memory.add() == 0);
  copy_bytes(memory);
  CHECK(second.remove() == 0);
  // The other one is left to shmem_finalize.
}

}  // namespace

PE_PART(registered) {
  const std::string_view kind = argc > 1 ? argv[1] : "";
  if (kind == "private" || kind == "mixed" || kind == "last") {
    shmemx_set_errors_return(1);
  }
  shmem_init();
  use(kind, argc > 2 && std::string_view(argv[2]) == "nodes");
  shmem_barrier_all();
  const int result = pe_result();
  shmem_finalize();
  return result;
}
