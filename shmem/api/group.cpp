// SPDX-License-Identifier: Apache-2.0
// Groups that a program forms itself.
#include "shmem/group/rank_group.hpp"

#include <unistd.h>

#include <cstdint>
#include <new>
#include <stdexcept>

#include "shmem/api/entry.hpp"
#include "shmemx_group.h"

using shmem::Result;
namespace api = shmem::api;

namespace shmem::api {

/// A process forked from a member has none of its threads, perhaps a locked mutex of one, and the memory that the
/// members share, in which its calls would count as those of the member.
class GroupOwner {
 public:
  [[nodiscard]] bool is_here() const { return pid_ == ::getpid(); }
  [[nodiscard]] Result<void> check(const char* call) const {
    return is_here()
               ? Result<void>()
               : shmem::fail(std::errc::operation_not_permitted,
                             fmt::format("shmem: {}: this process was forked from the member of the group (pid {}) and "
                                         "is not a member itself; make the call there, or create a group here",
                                         call, pid_));
  }

 private:
  pid_t pid_ = ::getpid();
};

}  // namespace shmem::api

struct shmemx_group_t {
  std::unique_ptr<shmem::RankGroup> group;
  api::GroupOwner owner{};
};

struct shmemx_group_message_t {
  shmem::RankGroup* group;  // until the message is over
  shmem::MessagePointer message;
  api::GroupOwner owner{};
};

struct shmemx_group_memory_t {
  std::shared_ptr<shmem::MemberMemory> memory;
  std::vector<int> places;  // of all ranks; -1: on another node
  api::GroupOwner owner{};
};

namespace {

/// Programs that have not asked for errors to be returned get this one, too. Its text is so short that strings need no
/// memory for it.
int out_of_memory() {
  return api::report({std::errc::not_enough_memory, "out of memory"});
}

// After the body of a call, a function-try-block.
#define SHMEM_GROUP_CATCH            \
  catch (const std::bad_alloc&) {    \
    return out_of_memory();          \
  }                                  \
  catch (const std::length_error&) { \
    return out_of_memory();          \
  }                                  \
  SHMEM_CATCH(int)

shmem::Error refuse(const char* call, const std::string& problem) {
  return shmem::fail(std::errc::invalid_argument, fmt::format("shmem: {}: {}", call, problem));
}

Result<void> outcome_of_store(const char* what, const std::string& key, int code) {
  if (code >= 0) {
    return {};
  }
  const auto error = static_cast<std::errc>(-code);
  return shmem::fail(error,
                     fmt::format("the store's {} of {} failed: {}", what, key, std::make_error_code(error).message()));
}

shmem::KeyValueStore store_of(const shmemx_group_store_t& store) {
  return {[store](const std::string& key, std::span<const std::byte> value) {
            return outcome_of_store("set", key, store.set(store.context, key.c_str(), value.data(), value.size()));
          },
          [store](const std::string& key, std::span<std::byte> value) {
            return outcome_of_store("get", key, store.get(store.context, key.c_str(), value.data(), value.size()));
          }};
}

/// Checks a handle that a call needs. Messages call it `what`.
template <typename Handle>
Result<void> check(const char* call, const char* what, const Handle* handle) {
  return handle == nullptr ? refuse(call, fmt::format("{} is NULL", what)) : handle->owner.check(call);
}

/// Times that cannot be counted in signed nanoseconds never come.
std::chrono::nanoseconds time_of(std::uint64_t nanoseconds) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::hours(24 * 365);
  return std::chrono::nanoseconds(std::min<std::uint64_t>(nanoseconds, kMost.count()));
}

Result<void> create(const shmemx_group_store_t* store, int rank, int size, shmemx_group_t** group) {
  constexpr const char* kCall = "shmemx_group_create";
  if (store == nullptr || store->set == nullptr || store->get == nullptr || group == nullptr) {
    return refuse(kCall, group == nullptr ? "group is NULL" : "the store, or a call of it, is NULL");
  }
  auto options = shmem::read_options(shmem::process_environment());
  if (!options) {
    return options.error();
  }
  auto made = shmem::RankGroup::create(store_of(*store), rank, size, *std::move(options));
  if (!made) {
    return made.error();
  }
  auto handle = std::make_unique<shmemx_group_t>();
  handle->group = *std::move(made);
  *group = handle.release();
  return {};
}

Result<void> check_call(const char* name, const shmemx_group_t* group, const shmemx_group_call_t* call) {
  if (auto ok = check(name, "group", group); !ok) {
    return ok;
  }
  if (call == nullptr) {
    return refuse(name, "call is NULL");
  }
  if (call->kind == SHMEMX_GROUP_ALLTOALL && (call->from_bytes == nullptr || call->to_bytes == nullptr)) {
    return refuse(name, "alltoall needs from_bytes and to_bytes");
  }
  return {};
}

shmem::StagedCall staged(const shmemx_group_call_t& call, std::uint32_t signature) {
  return {static_cast<shmem::StagedCall::Kind>(call.kind),
          static_cast<shmem::ElementType>(call.type),
          static_cast<shmem::ElementOperation>(call.operation),
          call.root,
          call.bytes,
          call.from,
          call.to,
          call.from_bytes,
          call.to_bytes,
          signature};
}

Result<void> allocate(shmemx_group_t* group, std::size_t bytes, std::uint64_t timeout_ns,
                      shmemx_group_memory_t** memory) {
  constexpr const char* kCall = "shmemx_group_allocate";
  if (auto ok = check(kCall, "group", group); !ok) {
    return ok;
  }
  if (memory == nullptr) {
    return refuse(kCall, "memory is NULL");
  }
  auto made = group->group->allocate(bytes, time_of(timeout_ns));
  if (!made) {
    return made.error();
  }
  std::vector<int> places;
  for (int rank = 0; rank < group->group->size(); ++rank) {
    places.push_back(group->group->place_of(rank).value_or(-1));
  }
  *memory =
      std::make_unique<shmemx_group_memory_t>(shmemx_group_memory_t{*std::move(made), std::move(places)}).release();
  return {};
}

struct Post {
  shmem::GroupMessage::Way way;
  void* data;
  std::size_t bytes;
  std::uint32_t type;
  int peer, tag;
  std::uint64_t timeout_ns;
  shmemx_group_done_t done;
  void* context;
};

Result<void> post(shmemx_group_t* group, const char* call, const Post& what, shmemx_group_message_t** message) {
  if (auto ok = check(call, "group", group); !ok) {
    return ok;
  }
  if (message == nullptr || (what.data == nullptr && what.bytes != 0)) {
    return refuse(call, message == nullptr ? "message is NULL" : "data is NULL");
  }
  const int least = what.way == shmem::GroupMessage::Way::kReceive ? -1 : 0;
  if (what.peer < least || what.peer >= group->group->size()) {
    return refuse(call, fmt::format("there is no rank {} in this group of {}", what.peer, group->group->size()));
  }
  if (what.bytes > PTRDIFF_MAX) {
    return refuse(call, fmt::format("{} bytes are more than any memory has", what.bytes));
  }
  if (what.type > shmem::MessageEnd::kMostType) {
    return refuse(call, fmt::format("the type is {}; types are 0 to {}", what.type, shmem::MessageEnd::kMostType));
  }
  auto made = std::make_shared<shmem::GroupMessage>();
  made->way = what.way;
  made->data = static_cast<std::byte*>(what.data);
  made->size = what.bytes;
  made->type = what.type;
  made->peer = what.peer;
  made->tag = what.tag;
  if (what.timeout_ns != 0) {
    made->deadline = shmem::Clock::now() + time_of(what.timeout_ns);
  }
  if (what.done != nullptr) {
    made->done = [done = what.done, context = what.context] { done(context); };
  }
  auto handle = std::make_unique<shmemx_group_message_t>(shmemx_group_message_t{group->group.get(), made});
  group->group->post(made);
  *message = handle.release();
  return {};
}

}  // namespace

extern "C" {

int shmemx_group_create(const shmemx_group_store_t* store, int rank, int size, shmemx_group_t** group) noexcept try {
  return api::code_of(create(store, rank, size, group));
}
SHMEM_GROUP_CATCH

void shmemx_group_destroy(shmemx_group_t* group) noexcept {
  const std::unique_ptr<shmemx_group_t> owner(group);
  if (owner && !owner->owner.is_here()) {
    static_cast<void>(owner->group.release());  // the copy of a forked process stays
  }
}

int shmemx_group_run(shmemx_group_t* group, const shmemx_group_call_t* call) noexcept try {
  const auto ok = check_call("shmemx_group_run", group, call);
  return api::code_of(ok ? group->group->run(staged(*call, 0), time_of(call->timeout_ns)) : ok);
}
SHMEM_GROUP_CATCH

int shmemx_group_run_signed(shmemx_group_t* group, const shmemx_group_call_t* call, uint32_t signature) noexcept try {
  const auto ok = check_call("shmemx_group_run_signed", group, call);
  return api::code_of(ok ? group->group->run(staged(*call, signature), time_of(call->timeout_ns)) : ok);
}
SHMEM_GROUP_CATCH

int shmemx_group_allocate(shmemx_group_t* group, size_t bytes, uint64_t timeout_ns,
                          shmemx_group_memory_t** memory) noexcept try {
  return api::code_of(allocate(group, bytes, timeout_ns, memory));
}
SHMEM_GROUP_CATCH

void* shmemx_group_memory_address(const shmemx_group_memory_t* memory) noexcept {
  return memory->owner.is_here() ? memory->memory->mine() : nullptr;
}

void* shmemx_group_memory_of(const shmemx_group_memory_t* memory, int rank) noexcept {
  const bool is_rank = rank >= 0 && static_cast<std::size_t>(rank) < memory->places.size();
  const int place = is_rank ? memory->places[static_cast<std::size_t>(rank)] : -1;
  return memory->owner.is_here() && place >= 0 ? memory->memory->part(place) : nullptr;
}

void shmemx_group_memory_free(shmemx_group_memory_t* memory) noexcept {
  if (const std::unique_ptr<shmemx_group_memory_t> owner(memory); owner) {
    owner->memory->release();
  }
}

int shmemx_group_check(shmemx_group_t* group, int rank) noexcept try {
  constexpr const char* kCall = "shmemx_group_check";
  if (auto ok = check(kCall, "group", group); !ok) {
    return api::code_of(ok);
  }
  if (rank < 0 || rank >= group->group->size()) {
    return api::code_of(refuse(kCall, fmt::format("there is no rank {} in this group", rank)));
  }
  return api::code_of(group->group->check(rank));
}
SHMEM_GROUP_CATCH

int shmemx_group_abort(shmemx_group_t* group, const char* reason) noexcept try {
  constexpr const char* kCall = "shmemx_group_abort";
  if (auto ok = check(kCall, "group", group); !ok) {
    return api::code_of(ok);
  }
  group->group->abort(reason != nullptr ? reason : "no reason is given");
  return 0;
}
SHMEM_GROUP_CATCH

int shmemx_group_missing(shmemx_group_t* group, char* text, size_t size) noexcept try {
  constexpr const char* kCall = "shmemx_group_missing";
  if (auto ok = check(kCall, "group", group); !ok) {
    return api::code_of(ok);
  }
  if (text == nullptr || size == 0) {
    return api::code_of(refuse(kCall, "there is no room for the text"));
  }
  const std::string missing = group->group->missing();
  text[missing.copy(text, size - 1)] = '\0';
  return 0;
}
SHMEM_GROUP_CATCH

int shmemx_group_statistics(shmemx_group_t* group, shmemx_group_statistics_t* statistics) noexcept try {
  constexpr const char* kCall = "shmemx_group_statistics";
  if (auto ok = check(kCall, "group", group); !ok) {
    return api::code_of(ok);
  }
  if (statistics == nullptr) {
    return api::code_of(refuse(kCall, "statistics is NULL"));
  }
  const auto [calls, direct_calls, staged_bytes, direct_messages, device_barriers, sent_bytes] =
      group->group->statistics();
  *statistics = {calls, direct_calls, staged_bytes, direct_messages, device_barriers, sent_bytes};
  return 0;
}
SHMEM_GROUP_CATCH

int shmemx_group_send(shmemx_group_t* group, const void* data, size_t bytes, int to, int tag, uint64_t timeout_ns,
                      shmemx_group_done_t done, void* context, shmemx_group_message_t** message) noexcept try {
  return api::code_of(
      post(group, "shmemx_group_send",
           {shmem::GroupMessage::Way::kSend, const_cast<void*>(data), bytes, 0, to, tag, timeout_ns, done, context},
           message));
}
SHMEM_GROUP_CATCH

int shmemx_group_receive(shmemx_group_t* group, void* data, size_t bytes, int source, int tag, uint64_t timeout_ns,
                         shmemx_group_done_t done, void* context, shmemx_group_message_t** message) noexcept try {
  return api::code_of(post(group, "shmemx_group_receive",
                           {shmem::GroupMessage::Way::kReceive, data, bytes, 0, source, tag, timeout_ns, done, context},
                           message));
}
SHMEM_GROUP_CATCH

int shmemx_group_send_typed(shmemx_group_t* group, const void* data, size_t bytes, uint32_t type, int to, int tag,
                            uint64_t timeout_ns, shmemx_group_done_t done, void* context,
                            shmemx_group_message_t** message) noexcept try {
  return api::code_of(
      post(group, "shmemx_group_send_typed",
           {shmem::GroupMessage::Way::kSend, const_cast<void*>(data), bytes, type, to, tag, timeout_ns, done, context},
           message));
}
SHMEM_GROUP_CATCH

int shmemx_group_receive_typed(shmemx_group_t* group, void* data, size_t bytes, uint32_t type, int source, int tag,
                               uint64_t timeout_ns, shmemx_group_done_t done, void* context,
                               shmemx_group_message_t** message) noexcept try {
  return api::code_of(
      post(group, "shmemx_group_receive_typed",
           {shmem::GroupMessage::Way::kReceive, data, bytes, type, source, tag, timeout_ns, done, context}, message));
}
SHMEM_GROUP_CATCH

int shmemx_group_message_test(shmemx_group_message_t* message) noexcept try {
  if (auto ok = check("shmemx_group_message_test", "message", message); !ok) {
    return api::code_of(ok);
  }
  // Acquire: pairs with the Mail's end of the message.
  if (!message->message->over.load(std::memory_order_acquire)) {
    return -EAGAIN;
  }
  return shmemx_group_message_wait(message);
}
SHMEM_GROUP_CATCH

int shmemx_group_message_wait(shmemx_group_message_t* message) noexcept try {
  if (auto ok = check("shmemx_group_message_wait", "message", message); !ok) {
    return api::code_of(ok);
  }
  if (message->message->over.load(std::memory_order_acquire)) {
    return message->message->error ? api::report(shmem::RankGroup::in_ranks(*message->message->error)) : 0;
  }
  return api::code_of(message->group->wait(message->message));
}
SHMEM_GROUP_CATCH

int shmemx_group_message_source(const shmemx_group_message_t* message) noexcept {
  return message->owner.is_here() ? message->message->peer : -EPERM;
}

uint32_t shmemx_group_message_peer_type(const shmemx_group_message_t* message) noexcept {
  return message->owner.is_here() ? message->message->peer_type : 0;
}

void shmemx_group_message_free(shmemx_group_message_t* message) noexcept {
  std::unique_ptr<shmemx_group_message_t> owner(message);
  if (owner && !owner->owner.is_here()) {
    static_cast<void>(owner.release());  // a thread of the member may have been writing to it
  }
}
}

#undef SHMEM_GROUP_CATCH
