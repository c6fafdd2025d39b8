// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/reference_files.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "shmem/kv/pair_table.hpp"

namespace kv_program {
namespace {

using shmem::Result;
using shmem::kv::PairPlan;
using shmem::kv::PePlan;

tl::unexpected<shmem::Error> wrong(const std::string& path, const std::string& what) {
  return shmem::fail(std::errc::bad_message, path + " " + what);
}

std::string bytes_text(std::uintmax_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

Result<std::int64_t> size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return shmem::fail_errno(error.value(), "cannot read " + path);
  }
  return static_cast<std::int64_t>(size);
}

Result<void> read_file(const std::string& path, std::span<std::byte> bytes, const std::string& why) {
  const auto size = size_of(path);
  if (!size) {
    return tl::make_unexpected(size.error());
  }
  if (*size != static_cast<std::int64_t>(bytes.size())) {
    return wrong(path, "has " + bytes_text(static_cast<std::uintmax_t>(*size)) + ", and should have " +
                           bytes_text(bytes.size()) + ": " + why);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file ? Result<void>{} : shmem::fail_errno(errno != 0 ? errno : EIO, "cannot read " + path);
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Result<void>{} : shmem::fail_errno(errno != 0 ? errno : EIO, "cannot write " + path);
}

std::string entry(std::size_t index, std::int64_t value) {
  return "says " + std::to_string(value) + " in entry " + std::to_string(index);
}

/// The row in `path`, for people.
std::string row(std::int64_t pe, const PePlan& part) {
  return "row " + std::to_string(pe) + " says {" + std::to_string(part.peer) + ", " + std::to_string(part.operation) +
         "}";
}

Result<void> check_pairs(const std::string& path, const PairPlan& plan) {
  const auto pes = static_cast<std::int64_t>(plan.size());
  for (std::int64_t pe = 0; pe < pes; ++pe) {
    const PePlan& mine = plan[static_cast<std::size_t>(pe)];
    if (mine.peer < 0 || mine.peer >= pes) {
      return wrong(path, "is wrong: " + row(pe, mine) + ", and there are PEs 0 to " + std::to_string(pes - 1));
    }
    const PePlan& theirs = plan[static_cast<std::size_t>(mine.peer)];
    if (theirs.peer != pe) {
      return wrong(path, "is wrong: " + row(pe, mine) + ", but " + row(mine.peer, theirs) + ": pairs are mutual");
    }
    if (mine.operation == shmem::kv::kSend && theirs.operation == shmem::kv::kSend) {
      return wrong(path, "is wrong: " + row(pe, mine) + " and " + row(mine.peer, theirs) + ": of a pair one can send");
    }
  }
  return {};
}

Result<void> check_blocks(const std::string& path, const std::vector<std::int64_t>& table, std::int64_t blocks) {
  const auto there_is = [blocks](std::int64_t block) { return block >= 0 && block < blocks; };
  const auto found = std::find_if_not(table.begin(), table.end(), there_is);
  if (found != table.end()) {
    return wrong(path, entry(static_cast<std::size_t>(found - table.begin()), *found) +
                           ", and the caches have blocks " + "0 to " + std::to_string(blocks - 1));
  }
  return {};
}

Result<void> check_once(const std::string& path, std::vector<std::int64_t> destinations) {
  std::sort(destinations.begin(), destinations.end());
  const auto twice = std::adjacent_find(destinations.begin(), destinations.end());
  if (twice != destinations.end()) {
    return wrong(path, "says block " + std::to_string(*twice) + " twice: a block can be written once");
  }
  return {};
}

}  // namespace

std::string ReferenceFolder::file(const std::string& name, int pe) const {
  return path_ + "/" + name + "_pe_" + std::to_string(pe) + ".bin";
}

std::string ReferenceFolder::cache_file(Cache cache, Kind kind, int pe) const {
  static constexpr const char* kKinds[] = {"input", "golden", "output"};
  return file(std::string(cache == Cache::kK ? "k" : "v") + "_cache_" + kKinds[static_cast<int>(kind)], pe);
}

bool ReferenceFolder::has_golden() const {
  std::error_code ignored;
  return std::filesystem::exists(cache_file(Cache::kK, Kind::kGolden, 0), ignored);
}

Result<void> ReferenceFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  return error ? shmem::fail_errno(error.value(), "cannot make the folder " + path_) : Result<void>{};
}

Result<std::int64_t> ReferenceFolder::count_blocks(std::int64_t block_bytes) const {
  const std::string path = cache_file(Cache::kK, Kind::kInput, 0);
  auto size = size_of(path);
  if (!size) {
    return size;
  }
  if (*size == 0 || *size % block_bytes != 0) {
    return wrong(path,
                 "has " + bytes_text(static_cast<std::uintmax_t>(*size)) + ", which is not one or more blocks of " +
                     bytes_text(static_cast<std::uintmax_t>(block_bytes)) + " (--heads, --page, --head-dim, --dtype)");
  }
  return *size / block_bytes;
}

Result<void> ReferenceFolder::read_cache(Cache cache, Kind kind, int pe, std::span<std::byte> bytes) const {
  return read_file(cache_file(cache, kind, pe), bytes,
                   "all caches are as large as " + cache_file(Cache::kK, Kind::kInput, 0));
}

Result<void> ReferenceFolder::write_cache(Cache cache, Kind kind, int pe, std::span<const std::byte> bytes) const {
  return write_file(cache_file(cache, kind, pe), bytes);
}

Result<void> ReferenceFolder::make_golden(Cache cache, int pe, const PairPlan& plan, std::int64_t block_bytes,
                                          std::span<std::byte> bytes) const {
  if (auto ok = read_cache(cache, Kind::kInput, pe, bytes); !ok) {
    return ok;
  }
  const PePlan& mine = plan[static_cast<std::size_t>(pe)];
  const PePlan& partner = plan[static_cast<std::size_t>(mine.peer)];
  if (partner.operation != shmem::kv::kSend || mine.peer == pe) {
    return {};
  }
  std::vector<std::byte> theirs(bytes.size());
  if (auto ok = read_cache(cache, Kind::kInput, static_cast<int>(mine.peer), theirs); !ok) {
    return ok;
  }
  for (std::size_t i = 0; i < partner.source.size(); ++i) {
    std::copy_n(theirs.begin() + partner.source[i] * block_bytes, block_bytes,
                bytes.begin() + partner.destination[i] * block_bytes);
  }
  return {};
}

Result<std::vector<std::int64_t>> ReferenceFolder::read_table(const std::string& path, std::int64_t count,
                                                              const std::string& why) const {
  std::vector<std::int64_t> table(static_cast<std::size_t>(count));
  if (auto ok = read_file(path, std::as_writable_bytes(std::span(table)), why); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return table;
}

Result<void> ReferenceFolder::read_blocks(PePlan& part, int pe, std::int64_t blocks) const {
  const std::string count_path = file("block_num", pe);
  const auto count = read_table(count_path, 1, "one int64");
  if (!count) {
    return tl::make_unexpected(count.error());
  }
  // A destination is named once, so there are not more than the caches have.
  if (count->front() < 0 || count->front() > blocks) {
    return wrong(count_path, "says " + std::to_string(count->front()) + ", and the caches have " +
                                 std::to_string(blocks) + " blocks");
  }
  for (auto* table : {&part.source, &part.destination}) {
    const std::string path = file(table == &part.source ? "src_block_table" : "dst_block_table", pe);
    auto read = read_table(path, count->front(), "as many int64 as " + count_path + " says");
    if (!read) {
      return tl::make_unexpected(read.error());
    }
    *table = *std::move(read);
    // Who does not send may have tables that nobody looks at.
    if (auto ok = check_blocks(path, *table, blocks); !ok && part.operation == shmem::kv::kSend) {
      return ok;
    }
  }
  return part.operation == shmem::kv::kSend ? check_once(file("dst_block_table", pe), part.destination)
                                            : Result<void>{};
}

Result<PairPlan> ReferenceFolder::read_plan(int pes, std::int64_t blocks) const {
  const std::string path = path_ + "/pair_list.bin";
  const auto rows =
      read_table(path, 2 * std::int64_t{pes}, "two int64 for each of " + std::to_string(pes) + " PEs (oshrun -n)");
  if (!rows) {
    return tl::make_unexpected(rows.error());
  }
  PairPlan plan;
  for (std::size_t pe = 0; pe < static_cast<std::size_t>(pes); ++pe) {
    plan.push_back({(*rows)[2 * pe], (*rows)[2 * pe + 1], {}, {}});
  }
  if (auto ok = check_pairs(path, plan); !ok) {
    return tl::make_unexpected(ok.error());
  }
  for (int pe = 0; pe < pes; ++pe) {
    if (auto ok = read_blocks(plan[static_cast<std::size_t>(pe)], pe, blocks); !ok) {
      return tl::make_unexpected(ok.error());
    }
  }
  return plan;
}

Result<void> ReferenceFolder::write_plan(const PairPlan& plan, int pe) const {
  const PePlan& mine = plan[static_cast<std::size_t>(pe)];
  const auto write = [](const std::string& path, const std::vector<std::int64_t>& table) {
    return write_file(path, std::as_bytes(std::span(table)));
  };
  auto done = write(file("src_block_table", pe), mine.source);
  if (done) {
    done = write(file("dst_block_table", pe), mine.destination);
  }
  if (done) {
    done = write(file("block_num", pe), {static_cast<std::int64_t>(mine.source.size())});
  }
  if (!done || pe != 0) {
    return done;
  }
  std::vector<std::int64_t> rows;
  for (const PePlan& part : plan) {
    rows.insert(rows.end(), {part.peer, part.operation});
  }
  return write(path_ + "/pair_list.bin", rows);
}

}  // namespace kv_program
