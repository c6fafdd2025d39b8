// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.10: collectives that move data, of teams and of active sets.
#include "shmem/collective/move.hpp"

#include "base/size_text.hpp"
#include "shmem/api/gathering.hpp"

using shmem::Members;
using shmem::Result;
using shmem::Strided;
namespace api = shmem::api;

namespace {

struct Call {
  const char* name;
  std::size_t element;  // bytes

  [[nodiscard]] std::size_t bytes(std::size_t nelems, std::size_t times = 1) const {
    return api::extent_of(name, times, nelems, element);
  }
};

Result<void> broadcast(const Members& members, const Call& call, void* dest, const void* source, std::size_t nelems,
                       int root, bool root_too) {
  if (root < 0 || root >= members.size()) {
    return shmem::fail(std::errc::invalid_argument, fmt::format("shmem: {}: there is no root {} among {}", call.name,
                                                                root, base::count(members.size(), "PE")));
  }
  const std::size_t bytes = call.bytes(nelems);
  api::check_buffer(members, call.name, dest, bytes);
  api::check_buffer(members, call.name, source, bytes);
  api::check_call(members, call.name, {{dest, bytes}, {source, bytes}, true},
                  {{"nelems", nelems}, {"PE_root", static_cast<std::size_t>(root)}});
  return shmem::broadcast(members, dest, source, bytes, root, root_too);
}

Result<void> fcollect(const Members& members, const Call& call, void* dest, const void* source, std::size_t nelems) {
  const std::size_t bytes = call.bytes(nelems);
  api::check_buffer(members, call.name, dest, call.bytes(nelems, static_cast<std::size_t>(members.size())));
  api::check_buffer(members, call.name, source, bytes);
  api::check_call(members, call.name,
                  {{dest, bytes * static_cast<std::size_t>(members.size())}, {source, bytes}, false},
                  {{"nelems", nelems}});
  return shmem::fcollect(members, dest, source, bytes);
}

/// Ends the job unless the result of a collect fits.
class CheckDest final : public shmem::CheckTotal {
 public:
  CheckDest(const Members& members, const char* call, const void* dest) : members_(members), call_(call), dest_(dest) {}
  Result<void> operator()(std::size_t total) const override {
    api::check_buffer(members_, call_, dest_, total);
    return {};
  }

 private:
  const Members& members_;
  const char* call_;
  const void* dest_;
};

Result<void> collect(const Members& members, const Call& call, void* dest, const void* source, std::size_t nelems) {
  const std::size_t bytes = call.bytes(nelems);
  api::check_buffer(members, call.name, source, bytes);
  api::check_call(members, call.name, {{dest, bytes}, {source, bytes}, false}, {});
  return shmem::collect(members, dest, source, bytes, CheckDest(members, call.name, dest));
}

Result<void> alltoalls(const Members& members, const Call& call, void* dest, const void* source, std::ptrdiff_t dst,
                       std::ptrdiff_t sst, std::size_t nelems) {
  if (dst < 1 || sst < 1) {
    return shmem::fail(std::errc::invalid_argument,
                       fmt::format("shmem: {}: strides {} and {} must be 1 or more", call.name, dst, sst));
  }
  const auto blocks = static_cast<std::size_t>(members.size());
  const auto extent = [&](std::ptrdiff_t stride) {
    const std::size_t all = api::extent_of(call.name, blocks, nelems, call.bytes(static_cast<std::size_t>(stride)));
    return all == 0 ? 0 : all - call.bytes(static_cast<std::size_t>(stride)) + call.element;
  };
  api::check_buffer(members, call.name, dest, extent(dst));
  api::check_buffer(members, call.name, source, extent(sst));
  api::check_call(members, call.name, {{dest, extent(dst)}, {source, extent(sst)}, false},
                  {{"dst", static_cast<std::size_t>(dst)}, {"sst", static_cast<std::size_t>(sst)}, {"nelems", nelems}});
  return shmem::alltoall(members, dest, source,
                         Strided{static_cast<std::size_t>(dst) * call.element,
                                 static_cast<std::size_t>(sst) * call.element, call.element, nelems});
}

/// Runs `Collective` for a team.
template <auto Collective, typename... Arguments>
int on_team(const Call& call, shmem_team_t team, Arguments... arguments) {
  return api::on_team(call.name, team, [&](const Members& members) { return Collective(members, call, arguments...); });
}

/// Runs `Collective` for an active set; false if this PE is not in it.
template <auto Collective, typename... Arguments>
bool on_set(const Call& call, const api::ActiveSet& set, Arguments... arguments) {
  return api::on_active_set(call.name, set,
                            [&](const Members& members) { return Collective(members, call, arguments...); });
}

}  // namespace

// The collectives of one kind of element.
#define SHMEM_DEFINE_ON_TEAM(PREFIX, SUFFIX, TYPE, SIZE)                                                            \
  SHMEM_ROUTINE(int, PREFIX##broadcast##SUFFIX,                                                                     \
                (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems, int PE_root))                   \
  try {                                                                                                             \
    return on_team<broadcast>({"shmem_" #PREFIX "broadcast" #SUFFIX, SIZE}, team, dest, source, nelems, PE_root,    \
                              true);                                                                                \
  }                                                                                                                 \
  SHMEM_CATCH(int)                                                                                                  \
  SHMEM_ROUTINE(int, PREFIX##collect##SUFFIX, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems))  \
  try {                                                                                                             \
    return on_team<collect>({"shmem_" #PREFIX "collect" #SUFFIX, SIZE}, team, dest, source, nelems);                \
  }                                                                                                                 \
  SHMEM_CATCH(int)                                                                                                  \
  SHMEM_ROUTINE(int, PREFIX##fcollect##SUFFIX, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems)) \
  try {                                                                                                             \
    return on_team<fcollect>({"shmem_" #PREFIX "fcollect" #SUFFIX, SIZE}, team, dest, source, nelems);              \
  }                                                                                                                 \
  SHMEM_CATCH(int)                                                                                                  \
  SHMEM_ROUTINE(int, PREFIX##alltoall##SUFFIX, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems)) \
  try {                                                                                                             \
    return on_team<alltoalls>({"shmem_" #PREFIX "alltoall" #SUFFIX, SIZE}, team, dest, source, 1, 1, nelems);       \
  }                                                                                                                 \
  SHMEM_CATCH(int)                                                                                                  \
  SHMEM_ROUTINE(int, PREFIX##alltoalls##SUFFIX,                                                                     \
                (shmem_team_t team, TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems))  \
  try {                                                                                                             \
    return on_team<alltoalls>({"shmem_" #PREFIX "alltoalls" #SUFFIX, SIZE}, team, dest, source, dst, sst, nelems);  \
  }                                                                                                                 \
  SHMEM_CATCH(int)
#define SHMEM_DEFINE_TYPED(NAME, TYPE) SHMEM_DEFINE_ON_TEAM(NAME##_, , TYPE, sizeof(TYPE))
SHMEM_RMA_TYPES(SHMEM_DEFINE_TYPED)
SHMEM_DEFINE_ON_TEAM(, mem, void, 1)

#define SHMEM_SET PE_start, logPE_stride, PE_size, pSync
#define SHMEM_DEFINE_ON_SET(BITS)                                                                                     \
  SHMEM_ROUTINE(void, broadcast##BITS,                                                                                \
                (void* dest, const void* source, size_t nelems, int PE_root, SHMEM_ACTIVE_SET, long* pSync))          \
  try {                                                                                                               \
    on_set<broadcast>({"shmem_broadcast" #BITS, (BITS) / 8}, {SHMEM_SET}, dest, source, nelems, PE_root, false);      \
  }                                                                                                                   \
  SHMEM_CATCH(void)                                                                                                   \
  SHMEM_ROUTINE(void, collect##BITS, (void* dest, const void* source, size_t nelems, SHMEM_ACTIVE_SET, long* pSync))  \
  try {                                                                                                               \
    if (on_set<collect>({"shmem_collect" #BITS, (BITS) / 8}, {SHMEM_SET}, dest, source, nelems)) {                    \
      api::clear_number({SHMEM_SET});                                                                                 \
    }                                                                                                                 \
  }                                                                                                                   \
  SHMEM_CATCH(void)                                                                                                   \
  SHMEM_ROUTINE(void, fcollect##BITS, (void* dest, const void* source, size_t nelems, SHMEM_ACTIVE_SET, long* pSync)) \
  try {                                                                                                               \
    on_set<fcollect>({"shmem_fcollect" #BITS, (BITS) / 8}, {SHMEM_SET}, dest, source, nelems);                        \
  }                                                                                                                   \
  SHMEM_CATCH(void)                                                                                                   \
  SHMEM_ROUTINE(void, alltoall##BITS, (void* dest, const void* source, size_t nelems, SHMEM_ACTIVE_SET, long* pSync)) \
  try {                                                                                                               \
    on_set<alltoalls>({"shmem_alltoall" #BITS, (BITS) / 8}, {SHMEM_SET}, dest, source, 1, 1, nelems);                 \
  }                                                                                                                   \
  SHMEM_CATCH(void)                                                                                                   \
  SHMEM_ROUTINE(                                                                                                      \
      void, alltoalls##BITS,                                                                                          \
      (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, SHMEM_ACTIVE_SET, long* pSync))   \
  try {                                                                                                               \
    on_set<alltoalls>({"shmem_alltoalls" #BITS, (BITS) / 8}, {SHMEM_SET}, dest, source, dst, sst, nelems);            \
  }                                                                                                                   \
  SHMEM_CATCH(void)
SHMEM_DEFINE_ON_SET(32)
SHMEM_DEFINE_ON_SET(64)
