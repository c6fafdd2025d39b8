// SPDX-License-Identifier: Apache-2.0
#include "shmem/profile/recorder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/number.hpp"
#include "shmem.h"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/profile/call_trace.hpp"

namespace shmem::profile {
namespace {

/// This process's part of the memory.
struct Own {
  Memory memory;
  PeTable* table;
  Target* targets;
  bool has_counter;
};

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? base::number<int>(text).value_or(-1) : -1;
}

std::optional<Own> attach() {
  const int fd = number_in(kFdVariable);
  const int pe = number_in(kJobRankVariable);
  if (fd < 0 || pe < 0) {
    return std::nullopt;
  }
  auto memory = Memory::attach(fd);
  const int index = memory ? pe - memory->header().first : -1;
  if (index < 0 || index >= memory->header().count) {
    return std::nullopt;
  }
  PeTable* table = &memory->table(index);
  Target* targets = memory->targets(index);
  const bool has_counter = memory->header().is_counter != 0;
  table->pid.store(::getpid(), std::memory_order_relaxed);
  return Own{std::move(*memory), table, targets, has_counter};
}

/// Null if this process is not a PE of oshrun --profile.
const Own* own() {
  // Never destroyed: exit handlers make calls, too.
  static const std::optional<Own>& mine = *new std::optional<Own>(attach());
  return mine ? &*mine : nullptr;
}

std::uint64_t ticks_of(const Own& own) {
  return own.has_counter ? counter() : nanoseconds();
}

void add(std::atomic<std::uint64_t>& number, std::uint64_t value, bool alone) {
  if (alone) {  // no other writer: no locked instruction
    number.store(number.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  } else {
    number.fetch_add(value, std::memory_order_relaxed);
  }
}

Line* make_line(const Own& own, std::string_view name, Kind kind) {
  PeTable& table = *own.table;
  const std::uint32_t used = table.lines.load(std::memory_order_relaxed);
  // A process that takes the place of one that has died goes on with its lines.
  for (std::uint32_t i = 0; i < used; ++i) {
    if (name == table.line[i].name.data()) {
      return &table.line[i];
    }
  }
  if (used == kMostLines || name.size() >= sizeof(Line::name)) {
    return nullptr;
  }
  Line& line = table.line[used];
  std::copy(name.begin(), name.end(), line.name.begin());
  line.kind = kind;
  table.lines.store(used + 1, std::memory_order_release);  // pairs with oshrun's load: the line is complete
  return &line;
}

bool is_start(std::string_view name) {
  return name == "shmem_init" || name == "shmem_init_thread" || name == "start_pes";
}

/// The routine's line; null if nothing is counted.
Line* first_call(Routine& routine) {
  static std::mutex mutex;
  const Own* mine = own();
  if (mine == nullptr) {
    return nullptr;
  }
  const std::scoped_lock lock(mutex);
  if (routine.line.load(std::memory_order_relaxed) == nullptr) {
    routine.shape = shape_of(routine.name, routine.has_ctx, routine.has_team);
    // Pairs with the load in Call's constructor: the shape is there.
    routine.line.store(make_line(*mine, routine.name, routine.shape.kind), std::memory_order_release);
  }
  const std::string_view name = routine.name;
  if (is_start(name)) {
    std::uint64_t never = 0;
    mine->table->started.compare_exchange_strong(never, ticks_of(*mine), std::memory_order_relaxed);
  }
  return routine.line.load(std::memory_order_relaxed);
}

bool is_main_thread() {
  static std::atomic<bool> taken{false};
  static thread_local constinit signed char is_main = 0;  // 0: not asked yet
  if (is_main == 0) {
    // Relaxed: it only chooses one thread.
    is_main = taken.exchange(true, std::memory_order_relaxed) ? -1 : 1;
  }
  return is_main > 0;
}

/// The number in the world of PE `pe` of a context; -1 if there is none.
int world_pe(std::uint64_t ctx, int pe) {
  if (ctx == 0) {  // SHMEM_CTX_DEFAULT
    return pe;
  }
  shmem_team_t team = SHMEM_TEAM_INVALID;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle
  const bool found = pshmem_ctx_get_team(reinterpret_cast<shmem_ctx_t>(ctx), &team) == 0;
  return found ? pshmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD) : -1;
}

/// Null without SHMEM_TRACE. Never destroyed: exit handlers make calls, too.
std::atomic<CallTrace*> trace{nullptr};

void flush_trace() {
  if (CallTrace* open = trace.load(std::memory_order_acquire); open != nullptr) {
    open->flush();
  }
}

/// After the start of libshmem, which has begun the file.
void open_trace(const Own& mine) {
  const char* path = std::getenv("SHMEM_TRACE");
  if (path == nullptr || *path == '\0' || trace.load(std::memory_order_relaxed) != nullptr) {
    return;
  }
  // Relaxed: the first PE has stored it before it joined the job.
  const int first = mine.memory.table(0).pid.load(std::memory_order_relaxed);
  // Pairs with the loads of it.
  trace.store(CallTrace::open(path, first, pshmem_my_pe()).release(), std::memory_order_release);
  std::atexit(flush_trace);
}

/// What follows the calls that start and end the library.
void start_or_end(const Own& mine, std::string_view name, std::uint64_t end) {
  if (is_start(name)) {
    open_trace(mine);
  }
  if (name == "shmem_finalize") {
    mine.table->finished.store(end, std::memory_order_relaxed);
    flush_trace();
  }
}

std::uint64_t bytes_of(const Shape& shape, const Argument* arguments) {
  if (!shape.moves) {
    return 0;
  }
  std::uint64_t bytes = shape.element != 0 ? shape.element : arguments[shape.pointer].pointee;
  for (const int factor : {shape.count, shape.blocks}) {
    bytes *= factor >= 0 ? arguments[factor].value : 1;
  }
  return bytes;
}

}  // namespace

Call::Call(Routine& routine)
    // Pairs with the store in first_call().
    : routine_(routine), line_(routine.line.load(std::memory_order_acquire)), is_main_(is_main_thread()) {
  if (line_ == nullptr) {
    line_ = first_call(routine);
  }
  if (line_ == nullptr) {
    return;
  }
  const Own& mine = *own();
  // Pairs with the store in open_trace().
  traced_since_ = trace.load(std::memory_order_acquire) != nullptr ? nanoseconds() : 0;
  begin_ = ticks_of(mine);
  if (is_main_) {
    mine.table->since.store(begin_, std::memory_order_relaxed);
    mine.table->present.store(1 + static_cast<std::uint32_t>(line_ - mine.table->line.data()),
                              std::memory_order_relaxed);
  }
}

void Call::done(const Argument* arguments, std::size_t count) {
  if (line_ == nullptr) {
    return;
  }
  const Own& mine = *own();
  const std::uint64_t end = ticks_of(mine);
  const Shape& shape = routine_.shape;
  const std::uint64_t bytes = bytes_of(shape, arguments + (routine_.has_ctx ? 1 : 0));
  Counts& counts = is_main_ ? line_->main : line_->others;
  add(counts.calls, 1, is_main_);
  add(counts.ticks, end - begin_, is_main_);
  if (bytes != 0) {
    add(counts.bytes, bytes, is_main_);
  }
  int target = -1;
  if (shape.has_pe) {
    const int pe = world_pe(routine_.has_ctx ? arguments[0].value : 0, static_cast<int>(arguments[count - 1].value));
    if (pe >= 0 && pe < mine.memory.header().total) {
      Traffic& traffic = is_main_ ? mine.targets[pe].main : mine.targets[pe].others;
      add(shape.kind == Kind::kGet ? traffic.got : traffic.put, bytes, is_main_);
      target = pe;
    }
  }
  if (traced_since_ != 0 && shape.kind != Kind::kOther) {
    trace.load(std::memory_order_acquire)
        ->add({routine_.name, shape.kind, traced_since_, nanoseconds(), bytes, target});
  }
  if (is_main_) {
    mine.table->present.store(0, std::memory_order_relaxed);
    if (shape.kind == Kind::kOther) {
      start_or_end(mine, routine_.name, end);
    }
  }
}

}  // namespace shmem::profile
