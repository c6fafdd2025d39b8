// SPDX-License-Identifier: Apache-2.0
// bench: pulls from another process, compared with memcpy of the same blocks within this one.
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "tools/kv_exchange/commands.hpp"

namespace kv_exchange {
namespace {

using Clock = std::chrono::steady_clock;

/// The bytes of all blocks of a size: more than the caches near a processor hold.
constexpr std::size_t kTotal = std::size_t{32} << 20;
constexpr std::size_t kMostBlocks = 16384;
constexpr int kLatencies = 20'000;
constexpr std::chrono::seconds kLongest{60};

std::size_t blocks_of(std::size_t size) {
  return std::clamp<std::size_t>(kTotal / size, 1, kMostBlocks);
}

std::byte content_of(std::size_t i) {
  return static_cast<std::byte>(i % 251 + 1);
}

/// Where blocks are, as their layout says.
enum class Kind : std::uint64_t {
  kMapped = 1,  // memory that the exchange has made; a sealed memfd is the same
  kRead = 2,    // a memfd that the owner had, without seals: readers do not map it
};

/// Of the size of vLLM's: a hash and the number of a cache group.
std::string key_of(std::size_t size, std::size_t i, Kind kind) {
  return fmt::format("{:x}{:011x}{:024x}", static_cast<std::uint64_t>(kind), size, i);
}

/// The blocks of one size, in memory of a region.
Result<void> publish(const Member& member, std::uint32_t region, std::byte* memory, std::size_t size, Kind kind) {
  for (std::size_t i = 0; i < blocks_of(size); ++i) {
    std::memset(memory + i * size, static_cast<int>(content_of(i)), size);
    const std::string key = key_of(size, i, kind);
    shmemx_exchange_entry_t entry{.key = {key.data(), key.size()},
                                  .region = region,
                                  .status = 0,
                                  .offset = i * size,
                                  .bytes = size,
                                  .layout = static_cast<std::uint64_t>(kind)};
    if (shmemx_exchange_publish(member.get(), &entry, 1) != 1) {
      return fail(static_cast<std::errc>(-entry.status), "bench: a block cannot be published");
    }
  }
  return {};
}

Result<void> publish_own_file(const Member& member, std::size_t size) {
  const std::size_t bytes = blocks_of(size) * size;
  const base::UniqueFd file(::memfd_create("kv-exchange-bench", MFD_CLOEXEC));
  auto mapped = ::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0
                    ? base::Mapping::share(file.get(), bytes)
                    : Result<base::Mapping>(base::fail_errno(errno, "bench: a memfd cannot be made"));
  if (!mapped) {
    return mapped.error();
  }
  shmemx_memory_t memory{.address = mapped->data(), .bytes = bytes, .fd = file.get(), .offset = 0};
  std::uint32_t region = 0;
  if (const int code = shmemx_exchange_register(member.get(), &memory, &region); code != 0) {
    return error_of(code);
  }
  return publish(member, region, mapped->data(), size, Kind::kRead);
}

/// The other process: publishes blocks of all sizes, and lives until it is killed.
Result<void> publish_all(const Options& options) {
  std::size_t blocks = 0;
  for (const std::size_t size : options.sizes) {
    blocks += 2 * blocks_of(size);
  }
  shmemx_exchange_options_t settings{};
  settings.blocks = static_cast<std::uint32_t>(blocks);
  auto member = Member::open(options.exchange, settings);
  if (!member) {
    return member.error();
  }
  for (const std::size_t size : options.sizes) {
    auto memory = member->make_memory(blocks_of(size) * size);
    auto done = memory ? publish(*member, memory->first, memory->second, size, Kind::kMapped) : memory.error();
    done = done ? publish_own_file(*member, size) : done;
    if (!done) {
      return done;
    }
  }
  while (true) {
    ::pause();
  }
}

/// A process forked from this one; killed with the object, and with this process.
class Child {
 public:
  template <typename Body>
  explicit Child(Body body) : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const Result<void> ended = body();
      std::fprintf(stderr, "kv_exchange: %s\n", ended.error().text.c_str());
      ::_exit(1);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

 private:
  pid_t pid_;
};

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  std::size_t size = 0, blocks = 0;
  double memcpy_rate = 0, pull_rate = 0, ratio = 0;                     // bytes per second; median of the ratios
  double read_rate = 0;                                                 // of Kind::kRead
  double find_ns = 0;                                                   // per key
  double one_memcpy_ns = 0, one_pull_ns = 0, one_find_and_pull_ns = 0;  // one block a call
};

/// Memory that begins where a page does, as the pools of serving engines do. A copy to another place in the page than
/// it comes from takes up to ten times as long.
class Pool {
 public:
  Pool(std::size_t bytes, std::byte value)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage)), &std::free) {
    if (memory_ == nullptr) {
      throw std::bad_alloc();
    }
    std::fill_n(memory_.get(), bytes, value);
  }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

/// The blocks of one size, found, and room for them.
class Blocks {
 public:
  Blocks(Member& member, std::size_t size, Kind kind)
      : member_(member),
        size_(size),
        layout_(static_cast<std::uint64_t>(kind)),
        count_(blocks_of(size)),
        found_(count_),
        source_(count_ * size, std::byte{7}),
        room_(count_ * size, std::byte{0}) {
    for (std::size_t i = 0; i < count_; ++i) {
      keys_.push_back(key_of(size, i, kind));
      destinations_.push_back(room_.data() + i * size);
    }
    for (const auto& key : keys_) {
      names_.push_back({key.data(), key.size()});
    }
  }

  bool find() {
    return shmemx_exchange_find(member_.get(), names_.data(), count_, layout_, 0, found_.data()) ==
           static_cast<int>(count_);
  }
  bool pull() {
    return shmemx_exchange_pull(member_.get(), found_.data(), destinations_.data(), count_, nullptr, nullptr) == 0;
  }
  bool pull_one(std::size_t i, bool find_first) {
    return (!find_first || shmemx_exchange_find(member_.get(), &names_[i], 1, layout_, 0, &found_[i]) == 1) &&
           shmemx_exchange_pull(member_.get(), &found_[i], &destinations_[i], 1, nullptr, nullptr) == 0;
  }
  void copy() {
    for (std::size_t i = 0; i < count_; ++i) {
      copy_one(i);
    }
  }
  void copy_one(std::size_t i) {
    std::memcpy(destinations_[i], source_.data() + i * size_, size_);
    asm volatile("" ::: "memory");  // it must happen
  }
  [[nodiscard]] bool is_right() const {
    for (std::size_t i = 0; i < room_.size(); ++i) {
      if (room_.data()[i] != content_of(i / size_)) {
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] double bytes() const { return static_cast<double>(room_.size()); }

 private:
  Member& member_;
  std::size_t size_;
  std::uint64_t layout_;
  std::size_t count_;
  std::vector<std::string> keys_;
  std::vector<shmemx_exchange_key_t> names_;
  std::vector<shmemx_exchange_block_t> found_;
  Pool source_, room_;
  std::vector<void*> destinations_;
};

template <typename Body>
double time_of(Body body) {
  const auto begin = Clock::now();
  body();
  return seconds(Clock::now() - begin);
}

/// The median of single calls for one of a few blocks, in nanoseconds.
template <typename Call>
double latency(const Blocks& blocks, Call call) {
  std::vector<double> times;
  for (int i = 0; i < kLatencies; ++i) {
    const std::size_t block = static_cast<std::size_t>(i) % std::min<std::size_t>(blocks.count(), 64);
    times.push_back(1e9 * time_of([&] { call(block); }));
  }
  return median(times);
}

/// The other process may still be publishing.
Result<void> wait_for(Blocks& blocks, std::size_t size) {
  const auto deadline = Clock::now() + kLongest;
  while (!blocks.find()) {
    if (Clock::now() > deadline) {
      return fail(std::errc::timed_out, fmt::format("bench: the blocks of {} bytes have not appeared", size));
    }
    ::usleep(10'000);
  }
  return {};
}

Error wrong_bytes(std::size_t size) {
  return fail(std::errc::io_error,
              fmt::format("bench: blocks of {} bytes have not arrived as they were published", size));
}

/// Pulls of Kind::kRead, in bytes per second.
Result<double> measure_reads(Member& member, std::size_t size, int repeats) {
  Blocks blocks(member, size, Kind::kRead);
  if (auto there = wait_for(blocks, size); !there) {
    return there.error();
  }
  bool worked = true;
  std::vector<double> pulls;
  for (int i = 0; i < repeats; ++i) {
    pulls.push_back(time_of([&] { worked = blocks.pull() && worked; }));
  }
  return worked && blocks.is_right() ? Result<double>(blocks.bytes() / median(pulls)) : wrong_bytes(size);
}

Result<Row> measure(Member& member, std::size_t size, int repeats) {
  Blocks blocks(member, size, Kind::kMapped);
  if (auto there = wait_for(blocks, size); !there) {
    return there.error();
  }
  bool worked = true;
  std::vector<double> copies, pulls, ratios, finds;
  for (int i = -2; i < repeats; ++i) {
    const double copy = time_of([&] { blocks.copy(); });
    const double pull = time_of([&] { worked = blocks.pull() && worked; });
    const double find = time_of([&] { worked = blocks.find() && worked; });
    if (i >= 0) {  // the first ones map the memory
      copies.push_back(copy);
      pulls.push_back(pull);
      ratios.push_back(copy / pull);
      finds.push_back(find);
    }
  }
  if (!worked || !blocks.is_right()) {
    return wrong_bytes(size);
  }
  Row row{.size = size,
          .blocks = blocks.count(),
          .memcpy_rate = blocks.bytes() / median(copies),
          .pull_rate = blocks.bytes() / median(pulls),
          .ratio = median(ratios),
          .find_ns = 1e9 * median(finds) / static_cast<double>(blocks.count())};
  row.one_memcpy_ns = latency(blocks, [&](std::size_t i) { blocks.copy_one(i); });
  row.one_pull_ns = latency(blocks, [&](std::size_t i) { worked = blocks.pull_one(i, false) && worked; });
  row.one_find_and_pull_ns = latency(blocks, [&](std::size_t i) { worked = blocks.pull_one(i, true) && worked; });
  return worked ? Result<Row>(row) : fail(std::errc::io_error, "bench: a pull of one block failed");
}

void print_json(const std::vector<Row>& rows) {
  say("[");
  for (const Row& row : rows) {
    say("{}\n  {{\"block_bytes\": {}, \"blocks\": {}, \"memcpy_bytes_per_second\": {:.0f}, \"pull_bytes_per_second\": "
        "{:.0f}, \"ratio\": {:.3f}, \"read_bytes_per_second\": {:.0f}, \"find_ns\": {:.0f}, \"one_memcpy_ns\": {:.0f}, "
        "\"one_pull_ns\": {:.0f}, "
        "\"one_find_and_pull_ns\": {:.0f}}}",
        &row == rows.data() ? "" : ",", row.size, row.blocks, row.memcpy_rate, row.pull_rate, row.ratio, row.read_rate,
        row.find_ns, row.one_memcpy_ns, row.one_pull_ns, row.one_find_and_pull_ns);
  }
  say("\n]\n");
}

void print_table(const std::vector<Row>& rows) {
  say("{:>10} {:>8} {:>12} {:>12} {:>8} {:>13} {:>10} {:>14} {:>12} {:>16}\n", "block", "blocks", "memcpy GB/s",
      "pull GB/s", "ratio", "unsealed GB/s", "find ns", "one memcpy ns", "one pull ns", "find + pull ns");
  for (const Row& row : rows) {
    say("{:>10} {:>8} {:>12.2f} {:>12.2f} {:>7.0f}% {:>13.2f} {:>10.0f} {:>14.0f} {:>12.0f} {:>16.0f}\n", row.size,
        row.blocks, row.memcpy_rate / 1e9, row.pull_rate / 1e9, 100 * row.ratio, row.read_rate / 1e9, row.find_ns,
        row.one_memcpy_ns, row.one_pull_ns, row.one_find_and_pull_ns);
  }
}

}  // namespace

Result<void> bench(const Options& given) {
  Options options = given;
  options.exchange = fmt::format("bench-{}", ::getpid());
  const Child owner([&] { return publish_all(options); });
  auto member = Member::open(options.exchange);
  if (!member) {
    return member.error();
  }
  std::vector<Row> rows;
  for (const std::size_t size : options.sizes) {
    auto row = measure(*member, size, options.repeats);
    if (!row) {
      return row.error();
    }
    auto reads = measure_reads(*member, size, options.repeats);
    if (!reads) {
      return reads.error();
    }
    row->read_rate = *reads;
    rows.push_back(*row);
  }
  options.json ? print_json(rows) : print_table(rows);
  return {};
}

}  // namespace kv_exchange
