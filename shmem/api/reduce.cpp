// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.10: reductions and scans, of teams and of active sets.
#include "shmem/collective/reduce.hpp"

#include "shmem/api/gathering.hpp"
#include "shmem/collective/operations.hpp"

using shmem::Members;
using shmem::Reduction;
using shmem::Result;
namespace api = shmem::api;

namespace {

enum class Kind { kReduce, kInclusiveScan, kExclusiveScan };

Result<void> run(const Members& members, const char* call, const Reduction& reduction, Kind kind, void* dest,
                 const void* source, std::size_t count) {
  const std::size_t bytes = api::extent_of(call, 1, count, reduction.element);
  api::check_buffer(members, call, dest, bytes);
  api::check_buffer(members, call, source, bytes);
  api::check_call(members, call, {{dest, bytes}, {source, bytes}, true}, {{"nreduce", count}});
  if (kind == Kind::kReduce) {
    return shmem::reduce(members, reduction, dest, source, count);
  }
  return shmem::scan(members, reduction, dest, source, count, kind == Kind::kInclusiveScan);
}

int on_team(const char* call, shmem_team_t team, const Reduction& reduction, Kind kind, void* dest, const void* source,
            std::size_t count) {
  return api::on_team(call, team,
                      [&](const Members& members) { return run(members, call, reduction, kind, dest, source, count); });
}

void on_set(const char* call, const api::ActiveSet& set, const Reduction& reduction, void* dest, const void* source,
            int count) {
  if (count < 0) {
    api::end_job(api::running(call), call, "nreduce is {}", count);
  }
  api::on_active_set(call, set, [&](const Members& members) {
    return run(members, call, reduction, Kind::kReduce, dest, source, static_cast<std::size_t>(count));
  });
}

}  // namespace

#define SHMEM_DEFINE_ON_TEAM(NAME, TYPE, VERB, OPERATION, KIND)                                                  \
  SHMEM_ROUTINE(int, NAME##_##VERB, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nreduce)) try {  \
    return on_team("shmem_" #NAME "_" #VERB, team, shmem::reduction<shmem::OPERATION, TYPE>(), Kind::KIND, dest, \
                   source, nreduce);                                                                             \
  }                                                                                                              \
  SHMEM_CATCH(int)
#define SHMEM_DEFINE_BITWISE(NAME, TYPE)                     \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, and_reduce, And, kReduce) \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, or_reduce, Or, kReduce)   \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, xor_reduce, Xor, kReduce)
#define SHMEM_DEFINE_ORDERED(NAME, TYPE)                         \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, max_reduce, Maximum, kReduce) \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, min_reduce, Minimum, kReduce)
#define SHMEM_DEFINE_ARITHMETIC(NAME, TYPE)                         \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, sum_reduce, Sum, kReduce)        \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, prod_reduce, Product, kReduce)   \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, sum_inscan, Sum, kInclusiveScan) \
  SHMEM_DEFINE_ON_TEAM(NAME, TYPE, sum_exscan, Sum, kExclusiveScan)
SHMEM_BITWISE_REDUCE_TYPES(SHMEM_DEFINE_BITWISE)
SHMEM_ORDERED_REDUCE_TYPES(SHMEM_DEFINE_ORDERED)
SHMEM_ARITHMETIC_REDUCE_TYPES(SHMEM_DEFINE_ARITHMETIC)

#define SHMEM_DEFINE_ON_SET(NAME, TYPE, VERB, OPERATION)                                                       \
  SHMEM_ROUTINE(void, NAME##_##VERB,                                                                           \
                (TYPE * dest, const TYPE* source, int nreduce, SHMEM_ACTIVE_SET, TYPE* /*pWrk*/, long* pSync)) \
  try {                                                                                                        \
    on_set("shmem_" #NAME "_" #VERB, {PE_start, logPE_stride, PE_size, pSync},                                 \
           shmem::reduction<shmem::OPERATION, TYPE>(), dest, source, nreduce);                                 \
  }                                                                                                            \
  SHMEM_CATCH(void)
#define SHMEM_DEFINE_OLD_BITWISE(NAME, TYPE)       \
  SHMEM_DEFINE_ON_SET(NAME, TYPE, and_to_all, And) \
  SHMEM_DEFINE_ON_SET(NAME, TYPE, or_to_all, Or)   \
  SHMEM_DEFINE_ON_SET(NAME, TYPE, xor_to_all, Xor)
#define SHMEM_DEFINE_OLD_ORDERED(NAME, TYPE)           \
  SHMEM_DEFINE_ON_SET(NAME, TYPE, max_to_all, Maximum) \
  SHMEM_DEFINE_ON_SET(NAME, TYPE, min_to_all, Minimum)
#define SHMEM_DEFINE_OLD_ARITHMETIC(NAME, TYPE)    \
  SHMEM_DEFINE_ON_SET(NAME, TYPE, sum_to_all, Sum) \
  SHMEM_DEFINE_ON_SET(NAME, TYPE, prod_to_all, Product)
SHMEM_OLD_BITWISE_REDUCE_TYPES(SHMEM_DEFINE_OLD_BITWISE)
SHMEM_OLD_ORDERED_REDUCE_TYPES(SHMEM_DEFINE_OLD_ORDERED)
SHMEM_OLD_ARITHMETIC_REDUCE_TYPES(SHMEM_DEFINE_OLD_ARITHMETIC)
