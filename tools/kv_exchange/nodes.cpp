// SPDX-License-Identifier: Apache-2.0
// exchanges, ping, bench --member: which exchanges this node has, whether their members answer, and how fast blocks of
// other nodes are.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <tuple>

#include "tools/kv_exchange/commands.hpp"

#include "base/fd.hpp"
#include "base/size_text.hpp"

namespace kv_exchange {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSockets = "/proc/net/unix";
/// The beginning of the names of members' sockets, as /proc shows them.
constexpr std::string_view kBegin = "@shmem-exchange/";
constexpr int kAnswers = 20;
/// Blocks of a size in one call, and the most of their bytes together: the serving member holds them all.
constexpr std::size_t kBlocks = 64;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr int kSingles = 200;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool is_remote(const shmemx_exchange_member_t& member) {
  return member.seat >= SHMEMX_EXCHANGE_MOST_MEMBERS;
}

/// The number of members of each exchange of this node, as the names of their sockets say: by user, name and node (""
/// or the hash of SHMEM_HOST_ID).
using Exchanges = std::map<std::tuple<unsigned, std::string, std::string>, int>;

/// "@shmem-exchange/USER/NAME[@NODE]/SEAT", which any process can use: what does not look so is skipped.
void add_socket(Exchanges& exchanges, const std::string& path) {
  if (!path.starts_with(kBegin)) {
    return;
  }
  std::istringstream parts(path.substr(kBegin.size()));
  unsigned user = 0;
  char slash = 0;
  std::string name;
  unsigned seat = 0;
  const bool whole = parts >> user >> slash && slash == '/' && std::getline(parts, name, '/') && parts >> seat;
  if (!whole || name.empty() || seat >= SHMEMX_EXCHANGE_MOST_MEMBERS) {
    return;
  }
  const auto at = name.find('@');
  const std::string node = at == std::string::npos ? "" : name.substr(at + 1);
  ++exchanges[{user, name.substr(0, at), node}];
}

/// A member locks its seat. Nobody holds the lock of a member that was killed.
bool is_locked(const std::filesystem::path& file) {
  const base::UniqueFd lock(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// "NAME[@NODE].SEAT.lock" in the folder.
Result<Exchanges> in_folder(const std::string& folder) {
  Exchanges found;
  std::error_code error;
  for (auto file = std::filesystem::directory_iterator(folder, error); !error && file != end(file);
       file.increment(error)) {
    std::filesystem::path name = file->path().filename();
    if (name.extension() != ".lock" || !is_locked(file->path())) {
      continue;
    }
    if (name.stem().extension() == ".holder") {
      continue;  // it has a seat as well
    }
    name = name.stem().stem();  // without the seat
    const std::string text = name.string();
    const auto at = text.find('@');
    ++found[{::geteuid(), text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)}];
  }
  return error ? Result<Exchanges>(base::fail_errno(error.value(), fmt::format("cannot read {}", folder))) : found;
}

Result<Exchanges> in_namespace() {
  std::ifstream file(kSockets);
  if (!file) {
    return base::fail_errno(errno, fmt::format("cannot read {}", kSockets));
  }
  Exchanges found;
  std::string line;
  std::getline(file, line);  // names of the columns
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string number, references, protocol, flags, type, state, inode, path;
    constexpr unsigned long kListens = 0x10000;  // __SO_ACCEPTCON: not the connections, which have the same name
    if (words >> number >> references >> protocol >> flags >> type >> state >> inode >> path &&
        (std::strtoul(flags.c_str(), nullptr, 16) & kListens) != 0) {
      add_socket(found, path);
    }
  }
  return found;
}

/// The blocks of one size that a serving member on another node holds, and room for them.
class RemoteBlocks {
 public:
  RemoteBlocks(Member& member, std::size_t size)
      : member_(member), size_(size), count_(std::clamp<std::size_t>(kMostBytes / size, 1, kBlocks)) {
    for (std::size_t i = 0; i < count_; ++i) {
      keys_.push_back(fmt::format("bench/{}/{}", size, i));
    }
  }

  /// Hands the blocks over to a serving member, as put does, and waits until it holds them.
  Result<void> place(double limit) {
    auto memory = member_.make_memory(count_ * size_);
    if (!memory) {
      return memory.error();
    }
    for (std::size_t i = 0; i < count_; ++i) {
      std::byte* block = memory->second + i * size_;
      std::memset(block, static_cast<int>(i % 251 + 1), size_);
      const std::span<const std::byte> bytes(block, size_);
      digests_.push_back(digest_of(bytes));
      if (auto done = member_.publish(std::string(kPutPrefix) + keys_[i], memory->first, i * size_, bytes); !done) {
        return done;
      }
    }
    auto begin = Clock::now();  // of the wait for the next one
    for (std::size_t i = 0; i < count_;) {
      auto found = member_.find(keys_[i], digests_[i]);
      if (found && found->seat >= SHMEMX_EXCHANGE_MOST_MEMBERS) {
        found_.push_back(*found);
        ++i;
        begin = Clock::now();
      } else if (since(begin) > limit) {
        return fail(std::errc::timed_out,
                    fmt::format("bench: no member on another node has taken a block within {} s; start one there: "
                                "kv_exchange serve --listen ...",
                                limit));
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
      }
    }
    return {};
  }

  /// Seconds of one call for all blocks.
  Result<double> pull_all() {
    room_.resize(count_ * size_);
    std::vector<void*> destinations;
    for (std::size_t i = 0; i < count_; ++i) {
      destinations.push_back(room_.data() + i * size_);
    }
    const auto begin = Clock::now();
    if (shmemx_exchange_pull(member_.get(), found_.data(), destinations.data(), count_, nullptr, nullptr) != 0) {
      return fail(std::errc::io_error,
                  fmt::format("bench: a pull of {} blocks failed: {}", count_, shmemx_error_text()));
    }
    const double time = since(begin);
    for (std::size_t i = 0; i < count_; ++i) {
      if (digest_of({room_.data() + i * size_, size_}) != digests_[i]) {
        return fail(std::errc::io_error, "bench: a block has not arrived as it was published");
      }
    }
    return time;
  }
  Result<double> pull_one(std::size_t i, bool find_first) {
    void* destination = room_.data();
    const auto begin = Clock::now();
    if (find_first) {
      auto found = member_.find(keys_[i], digests_[i]);
      if (!found) {
        return found.error();
      }
    }
    if (shmemx_exchange_pull(member_.get(), &found_[i], &destination, 1, nullptr, nullptr) != 0) {
      return fail(std::errc::io_error, fmt::format("bench: a pull failed: {}", shmemx_error_text()));
    }
    return since(begin);
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  Member& member_;
  std::size_t size_, count_;
  std::vector<std::string> keys_;
  std::vector<std::uint64_t> digests_;
  std::vector<shmemx_exchange_block_t> found_;
  Bytes room_;
};

struct RemoteRow {
  std::size_t size = 0, blocks = 0;
  double rate = 0, pull = 0, find_and_pull = 0;  // bytes per second; seconds
};

Result<RemoteRow> measure_remote(Member& member, std::size_t size, const Options& options) {
  RemoteBlocks blocks(member, size);
  if (auto placed = blocks.place(options.limit); !placed) {
    return placed.error();
  }
  std::vector<double> all, pulls, finds;
  for (int i = -2; i < options.repeats; ++i) {
    const auto time = blocks.pull_all();
    if (!time) {
      return time.error();
    }
    if (i >= 0) {  // the first ones make the connection
      all.push_back(*time);
    }
  }
  for (int i = 0; i < kSingles; ++i) {
    const auto block = static_cast<std::size_t>(i) % blocks.count();
    const auto pull = blocks.pull_one(block, false);
    const auto both = blocks.pull_one(block, true);
    if (!pull || !both) {
      return pull ? both.error() : pull.error();
    }
    pulls.push_back(*pull);
    finds.push_back(*both);
  }
  return RemoteRow{.size = size,
                   .blocks = blocks.count(),
                   .rate = static_cast<double>(blocks.count() * size) / middle_of(all),
                   .pull = middle_of(pulls),
                   .find_and_pull = middle_of(finds)};
}

void print_remote(const std::vector<RemoteRow>& rows, bool json) {
  if (json) {
    say("[");
    for (const RemoteRow& row : rows) {
      say("{}\n  {{\"block_bytes\": {}, \"blocks\": {}, \"pull_bytes_per_second\": {:.0f}, \"one_pull_ns\": {:.0f}, "
          "\"one_find_and_pull_ns\": {:.0f}}}",
          &row == rows.data() ? "" : ",", row.size, row.blocks, row.rate, 1e9 * row.pull, 1e9 * row.find_and_pull);
    }
    say("\n]\n");
    return;
  }
  say("{:>10} {:>8} {:>12} {:>12} {:>14}\n", "block", "blocks", "pull GB/s", "one pull us", "find + pull us");
  for (const RemoteRow& row : rows) {
    say("{:>10} {:>8} {:>12.2f} {:>12.1f} {:>14.1f}\n", row.size, row.blocks, row.rate / 1e9, 1e6 * row.pull,
        1e6 * row.find_and_pull);
  }
}

}  // namespace

std::string exchange_folder() {
  const char* const folder = std::getenv("SHMEM_EXCHANGE_DIR");
  return folder != nullptr ? folder : "";
}

Result<void> exchanges() {
  const std::string folder = exchange_folder();
  const auto found = folder.empty() ? in_namespace() : in_folder(folder);
  if (!found) {
    return found.error();
  }
  say("{:>7} {:>10} {:<16} {}\n", "members", "user", "node", "exchange");
  for (const auto& [key, members] : *found) {
    const auto& [user, name, node] = key;
    say("{:>7} {:>10} {:<16} {}{}\n", members, user, node.empty() ? "-" : node, name,
        user == ::geteuid() ? "" : " (of another user)");
  }
  if (found->empty()) {
    std::fprintf(stderr, "kv_exchange: no exchange has members in this %s\n",
                 folder.empty() ? "network namespace" : "folder");
  }
  return {};
}

Result<void> ping(const Options& options) {
  const auto begin = Clock::now();
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  const double joined = since(begin);
  auto others = member->others();
  if (others.empty()) {
    return no_members(options);
  }
  const auto remote = std::count_if(others.begin(), others.end(), is_remote);
  say("{}: {} on this node and {} on others have answered; joined in {:.2f} ms\n", options.exchange,
      base::count(others.size() - static_cast<std::size_t>(remote), "member"), remote, 1e3 * joined);
  if (remote == 0) {
    return {};
  }
  // Asks those on other nodes for the number of their blocks.
  std::vector<double> times;
  for (int i = 0; i < kAnswers; ++i) {
    const auto asked = Clock::now();
    others = member->others();
    times.push_back(since(asked));
  }
  say("members on other nodes answer in {:.3f} ms (median of {}; at most {:.3f} ms)\n", 1e3 * middle_of(times),
      kAnswers, 1e3 * *std::max_element(times.begin(), times.end()));
  for (const auto& other : others) {
    if (is_remote(other)) {
      say("  seat {}, pid {}, {}\n", other.seat, other.pid, base::count(other.blocks, "block"));
    }
  }
  return {};
}

Result<void> bench_nodes(const Options& options) {
  auto settings = kVisitor;
  settings.blocks = 0;
  auto member = Member::open(options, settings);
  if (!member) {
    return member.error();
  }
  std::vector<RemoteRow> rows;
  for (const std::size_t size : options.sizes) {
    auto row = measure_remote(*member, size, options);
    if (!row) {
      return row.error();
    }
    rows.push_back(*row);
  }
  print_remote(rows, options.json);
  return {};
}

}  // namespace kv_exchange
