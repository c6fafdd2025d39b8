// SPDX-License-Identifier: Apache-2.0
// Caches in registered memory whose K and V are memory of different kinds, and a PE that unmaps its private memory: the
// copies into it fail, and all PEs get an error that says so.
//
//   kv_pes private
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "tests/integration/kv/kv_objects.hpp"
#include "tests/integration/kv/kv_pes.hpp"
#include "tests/integration/shmem/registered_memory.hpp"

namespace kv_private {
namespace {

using registered::me;
using registered::Memory;

constexpr kv_model::Shape kShape{SHMEMX_KV_APART, 2, 2, 8, 1, 16, 32};

kv_test::Plan pairs_from_0_to_1() {
  kv_model::PairPlan pairs{{1, 0, 0, 1, 2, 1}, std::vector<kv_model::Moves>(3)};
  pairs.sent[0] = {{{0, 2}, {1, 3}}};
  return kv_test::make_pairs(pairs, me());
}

shmemx_kv_op_t* make_operator() {
  shmemx_kv_op_t* op = nullptr;
  CHECK(shmemx_kv_op_create(SHMEM_TEAM_WORLD, nullptr, &op) == 0);
  return op;
}

/// K is private on PE 1, and V on the others, so that all PEs have some private memory and some that is mapped.
void separate_kinds() {
  const Memory k(me() == 1 ? Memory::Kind::kPrivate : Memory::Kind::kGiven, kShape.k_bytes());
  const Memory v(me() == 1 ? Memory::Kind::kGiven : Memory::Kind::kPrivate, kShape.k_bytes());
  CHECK(k.add() == 0 && v.add() == 0);
  shmemx_kv_op_t* op = make_operator();
  std::memset(k.at<void>(), 10 + me(), k.bytes());
  std::memset(v.at<void>(), 20 + me(), v.bytes());
  const auto cache = kv_test::describe(kShape, k.at<void>(), v.at<void>());
  shmem_barrier_all();
  const auto plan = kv_test::make_plan({{0, 2, 1, 2}, {1, 2, 2, 2}, {2, 2, 0, 2}, {0, 4, 2, 5}}, SHMEMX_KV_COPY);
  CHECK(shmemx_kv_shuffle(op, plan.get(), &cache) == 0);
  for (std::int64_t block = 0; block < kShape.blocks; ++block) {
    const int from = block == 2 ? (me() + 2) % 3 : block == 5 && me() == 2 ? 0 : me();
    const auto at = kv_model::place_of(kShape, 1, 0, block).offset;
    CHECK(*k.at<unsigned char>(at) == 10 + from);
    CHECK(*v.at<unsigned char>(at) == 20 + from);
  }
  CHECK(shmemx_kv_op_destroy(op) == 0);
  CHECK(k.remove() == 0 && v.remove() == 0);
}

/// PE 1 unmaps what it has registered.
void unmapped() {
  const std::size_t bytes = 2 * kShape.k_bytes();
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED && shmemx_memory_register(memory, bytes, -1, 0) == 0);
  const auto cache = kv_test::describe(kShape, memory, static_cast<std::byte*>(memory) + kShape.k_bytes());
  shmemx_kv_op_t* op = make_operator();
  const auto plan = kv_test::make_plan({{0, 0, 1, 0}, {0, 1, 2, 1}}, SHMEMX_KV_COPY);
  const auto pairs = pairs_from_0_to_1();
  CHECK(shmemx_kv_shuffle(op, plan.get(), &cache) == 0);
  CHECK(shmemx_kv_shuffle(op, pairs.get(), &cache) == 0);
  shmem_barrier_all();
  if (me() == 1) {
    ::munmap(memory, bytes);
  }
  shmem_barrier_all();
  const auto fails = [&](const kv_test::Plan& how, int error, const std::string& text) {
    CHECK(shmemx_kv_shuffle(op, how.get(), &cache) == error);
    CHECK(std::string_view(shmemx_error_text()).find(text) != std::string_view::npos);
  };
  const std::string not_mapped = "PE 1 (pid ";
  if (me() < 2) {
    fails(pairs, me() == 0 ? -EFAULT : -ECONNABORTED, me() == 0 ? not_mapped : "PE 0 gave up: Bad address");
  } else {
    CHECK(shmemx_kv_shuffle(op, pairs.get(), &cache) == 0);
  }
  fails(plan, me() == 0 ? -EFAULT : -ECONNABORTED,
        me() == 0 ? not_mapped : "PE 0 could not send its blocks to PE 1: Bad address (its own message says why)");
  fails(plan, me() == 0 ? -EFAULT : -ECONNABORTED, "an earlier call ended in the middle");
  CHECK(shmemx_kv_op_destroy(op) == 0);
  CHECK(shmemx_memory_unregister(memory) == 0);
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  shmemx_set_errors_return(1);
  shmem_init();
  separate_kinds();
  unmapped();
  shmem_barrier_all();
  const int failures = pe_checks::failures;
  std::printf("PE %d had %d failures\n", me(), failures);
  shmem_finalize();
  return failures == 0 ? 0 : 1;
}

}  // namespace kv_private
