// SPDX-License-Identifier: Apache-2.0
// put, get, list, stats: commands that join the exchange for a moment.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "base/fd.hpp"
#include "tools/kv_exchange/commands.hpp"

namespace kv_exchange {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenLooks{10};

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  base::UniqueFd opened;
  if (path != "-") {
    opened.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!opened) {
      return base::fail_errno(errno, "cannot write " + path);
    }
  }
  const int fd = opened ? opened.get() : STDOUT_FILENO;
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) {
      return base::fail_errno(errno, "cannot write " + path);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(wrote, 0)));
  }
  return {};
}

std::string user_name() {
  const passwd* const user = ::getpwuid(::geteuid());  // NOLINT(concurrency-mt-unsafe): before there are threads
  return user != nullptr ? user->pw_name : std::to_string(::geteuid());
}

/// "user me, network namespace 4026531840, SHMEM_HOST_ID=a": what members of one node have in common.
std::string here_text() {
  struct stat network {};
  const bool known = ::stat("/proc/self/ns/net", &network) == 0;
  const char* const host = std::getenv("SHMEM_HOST_ID");
  const std::string folder = exchange_folder();
  return fmt::format("user {}, {} {}, {}", user_name(), folder.empty() ? "network namespace" : "folder",
                     !folder.empty() ? folder
                     : known         ? std::to_string(network.st_ino)
                                     : "?",
                     host != nullptr ? fmt::format("SHMEM_HOST_ID={}", host) : "no SHMEM_HOST_ID");
}

/// Hands the block over to the holder of the exchange. False: there is none.
Result<bool> put_into_holder(Member& member, const Options& options, std::span<const std::byte> bytes) {
  shmemx_exchange_put_t put{.key = {options.key.data(), options.key.size()},
                            .source = bytes.data(),
                            .bytes = bytes.size(),
                            .layout = digest_of(bytes),
                            .status = 0,
                            .flags = 0};
  member.use_holder(options);
  const int count = shmemx_exchange_put(member.get(), &put, 1);
  if (count == 1) {
    return true;
  }
  const Error error = count < 0
                          ? error_of(count)
                          : base::fail_errno(-put.status, fmt::format("the holder of exchange {} has not taken {}",
                                                                      options.exchange, printable(options.key)));
  return error.code == std::errc::not_connected ? Result<bool>(false) : error;
}

Error no_block(const Options& options, std::size_t members) {
  return fail(std::errc::no_such_file_or_directory,
              fmt::format("no block {}: {} of exchange {} {} it; kv_exchange list {} shows what there is",
                          printable(options.key), members == 1 ? "the other member" : "none of the other members",
                          options.exchange, members == 1 ? "does not have" : "has", options.exchange));
}

/// The other members, at least one.
Result<std::vector<shmemx_exchange_member_t>> others_in(Member& member, const Options& options) {
  auto others = member.others();
  return others.empty() ? no_members(options) : Result<std::vector<shmemx_exchange_member_t>>(std::move(others));
}

}  // namespace

Error no_members(const Options& options) {
  std::string text =
      fmt::format("exchange {} has no members here ({}); members on one node see each other if these are the same",
                  options.exchange, here_text());
  if (!options.members.empty()) {
    text += fmt::format(". None answers at {}", fmt::join(options.members, ", "));
  }
  return fail(std::errc::no_such_process,
              fmt::format("{}. To start one: kv_exchange serve {}", text, options.exchange));
}

std::string printable(const std::string& key) {
  std::string text;
  for (const char c : key) {
    const bool plain = c > ' ' && c < 127 && c != '\\';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

Result<Bytes> read_file(const std::string& path) {
  base::UniqueFd opened;
  if (path != "-") {
    opened.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) {
      return base::fail_errno(errno, "cannot read " + path);
    }
  }
  const int fd = opened ? opened.get() : STDIN_FILENO;
  Bytes bytes;
  while (true) {
    const std::size_t had = bytes.size();
    bytes.resize(had + (std::size_t{1} << 16));
    const ssize_t got = ::read(fd, bytes.data() + had, bytes.size() - had);
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) {
      return base::fail_errno(errno, "cannot read " + path);
    }
    if (got == 0) {
      return bytes;
    }
  }
}

Result<void> put(const Options& options) {
  if (options.key.empty() || options.key.size() > kMostKeyBytes) {
    return fail(std::errc::invalid_argument,
                fmt::format("the key has {} bytes; keys have 1 to {}", options.key.size(), kMostKeyBytes));
  }
  auto bytes = read_file(options.file);
  if (!bytes) {
    return bytes.error();
  }
  if (bytes->empty()) {
    return fail(std::errc::invalid_argument, options.file + " is empty; a block has at least 1 byte");
  }
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  const auto held = put_into_holder(*member, options, *bytes);
  if (!held || *held) {
    return held ? Result<void>() : held.error();
  }
  auto memory = member->make_memory(bytes->size());
  if (!memory) {
    return memory.error();
  }
  std::copy(bytes->begin(), bytes->end(), memory->second);
  if (auto published = member->publish(std::string(kPutPrefix) + options.key, memory->first, 0, *bytes); !published) {
    return published;
  }
  const std::uint64_t digest = digest_of(*bytes);
  if (options.limit > 0 && member->others().empty()) {
    std::fprintf(stderr, "kv_exchange: waiting for up to %g s: %s\n", options.limit, no_members(options).text.c_str());
  }
  const auto deadline = Clock::now() + std::chrono::duration<double>(options.limit);
  while (!member->has(options.key, digest)) {
    if (Clock::now() >= deadline) {
      return fail(std::errc::timed_out,
                  fmt::format("no member has taken {} of exchange {} within {} s; start one: kv_exchange serve {}",
                              printable(options.key), options.exchange, options.limit, options.exchange));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return {};
}

Result<void> get(const Options& options) {
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  const auto block = member->find(options.key);
  if (!block) {
    const auto others = others_in(*member, options);
    return !others                                                      ? others.error()
           : block.error().code != std::errc::no_such_file_or_directory ? block.error()
                                                                        : no_block(options, others->size());
  }
  if (block->bytes > options.most) {  // which any member can claim
    return fail(std::errc::file_too_large,
                fmt::format("the block of {} has {} bytes, more than the {} that get pulls; to pull it: --most {}",
                            printable(options.key), block->bytes, options.most, block->bytes));
  }
  Bytes bytes;
  try {
    bytes.resize(block->bytes);
  } catch (const std::bad_alloc&) {
    return fail(std::errc::not_enough_memory,
                fmt::format("there is no memory for the {} bytes of {}", block->bytes, printable(options.key)));
  }
  if (auto pulled = member->pull(*block, bytes.data()); !pulled) {
    return pulled;
  }
  return write_file(options.file, bytes);
}

Result<void> list(const Options& options) {
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  const auto others = others_in(*member, options);
  if (!others) {
    return others.error();
  }
  say("{:>4} {:>12} {:>16} {}\n", "seat", "bytes", "layout", "key");
  for (const auto& other : *others) {
    for (const auto& listed : member->list(other.seat)) {
      say("{:>4} {:>12} {:>16x} {}\n", other.seat, listed.block.bytes, listed.block.layout, printable(listed.key));
    }
  }
  return {};
}

Result<void> stats(const Options& options) {
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  const auto others = others_in(*member, options);
  if (!others) {
    return others.error();
  }
  say("{:>4} {:>10} {:>10} {:>10} {:>16} {:>16}\n", "seat", "pid", "blocks", "of", "bytes", "id");
  for (const auto& other : *others) {
    say("{:>4} {:>10} {:>10} {:>10} {:>16} {:>16x}\n", other.seat, other.pid, other.blocks, other.most_blocks,
        other.bytes, other.id);
  }
  return {};
}

}  // namespace kv_exchange
