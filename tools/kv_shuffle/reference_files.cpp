// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace kv_program {
namespace {

Error wrong(const std::string& path, const std::string& what) {
  return fail(std::errc::bad_message, fmt::format("{} {}", path, what));
}

std::string bytes_text(std::uintmax_t bytes) {
  return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
}

Result<std::int64_t> size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return fail_errno(error.value(), "cannot read " + path);
  }
  return static_cast<std::int64_t>(size);
}

Result<void> read_file(const std::string& path, std::span<std::byte> bytes, const std::string& why) {
  const auto size = size_of(path);
  if (!size) {
    return size.error();
  }
  if (*size != static_cast<std::int64_t>(bytes.size())) {
    return wrong(path, fmt::format("has {}, and should have {}: {}", bytes_text(static_cast<std::uintmax_t>(*size)),
                                   bytes_text(bytes.size()), why));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file ? Result<void>{} : fail_errno(errno != 0 ? errno : EIO, "cannot read " + path);
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Result<void>{} : fail_errno(errno != 0 ? errno : EIO, "cannot write " + path);
}

std::string row_text(std::int64_t pe, const PairRow& row) {
  return fmt::format("row {} says {{{}, {}}}", pe, row.partner, row.operation);
}

Result<void> check_pairs(const std::string& path, const PairPlan& plan) {
  const auto pes = static_cast<std::int64_t>(plan.size());
  for (std::int64_t pe = 0; pe < pes; ++pe) {
    const PairRow& mine = plan[static_cast<std::size_t>(pe)];
    if (mine.partner < 0 || mine.partner >= pes) {
      return wrong(path, fmt::format("is wrong: {}, and there are PEs 0 to {}", row_text(pe, mine), pes - 1));
    }
    const PairRow& theirs = plan[static_cast<std::size_t>(mine.partner)];
    if (theirs.partner != pe) {
      return wrong(path, fmt::format("is wrong: {}, but {}: pairs are mutual", row_text(pe, mine),
                                     row_text(mine.partner, theirs)));
    }
    if (mine.operation == kSend && theirs.operation == kSend) {
      return wrong(path, fmt::format("is wrong: {} and {}: of a pair one can send", row_text(pe, mine),
                                     row_text(mine.partner, theirs)));
    }
  }
  return {};
}

Result<void> check_blocks(const std::string& path, const std::vector<std::int64_t>& table, std::int64_t blocks) {
  const auto exists = [blocks](std::int64_t block) { return block >= 0 && block < blocks; };
  const auto found = std::find_if_not(table.begin(), table.end(), exists);
  if (found != table.end()) {
    return wrong(path, fmt::format("says {} in entry {}, and the caches have blocks 0 to {}", *found,
                                   found - table.begin(), blocks - 1));
  }
  return {};
}

Result<void> check_once(const std::string& path, std::vector<std::int64_t> destinations) {
  std::sort(destinations.begin(), destinations.end());
  const auto twice = std::adjacent_find(destinations.begin(), destinations.end());
  if (twice != destinations.end()) {
    return wrong(path, fmt::format("says block {} twice: a block can be written once", *twice));
  }
  return {};
}

}  // namespace

std::string ReferenceFolder::file(const std::string& name, int pe) const {
  return fmt::format("{}/{}_pe_{}.bin", path_, name, pe);
}

std::string ReferenceFolder::cache_file(Cache cache, Kind kind, int pe) const {
  static constexpr const char* kKinds[] = {"input", "golden", "output"};
  return file(fmt::format("{}_cache_{}", cache == Cache::kK ? "k" : "v", kKinds[static_cast<int>(kind)]), pe);
}

bool ReferenceFolder::has_golden() const {
  std::error_code ignored;
  return std::filesystem::exists(cache_file(Cache::kK, Kind::kGolden, 0), ignored);
}

Result<void> ReferenceFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  return error ? fail_errno(error.value(), "cannot create the folder " + path_) : Result<void>{};
}

Result<std::int64_t> ReferenceFolder::count_blocks(std::int64_t block_bytes) const {
  const std::string path = cache_file(Cache::kK, Kind::kInput, 0);
  auto size = size_of(path);
  if (!size) {
    return size;
  }
  if (*size == 0 || *size % block_bytes != 0) {
    return wrong(path,
                 fmt::format("has {}, which is not one or more blocks of {} (--heads, --page, --head-dim, --dtype)",
                             bytes_text(static_cast<std::uintmax_t>(*size)),
                             bytes_text(static_cast<std::uintmax_t>(block_bytes))));
  }
  return *size / block_bytes;
}

Result<void> ReferenceFolder::read_cache(Cache cache, Kind kind, int pe, std::span<std::byte> bytes) const {
  return read_file(cache_file(cache, kind, pe), bytes,
                   "all caches are as large as " + cache_file(Cache::kK, Kind::kInput, 0));
}

Result<void> ReferenceFolder::write_cache(Cache cache, Kind kind, std::span<const std::byte> bytes) const {
  return write_file(cache_file(cache, kind, shmem_my_pe()), bytes);
}

Result<void> ReferenceFolder::make_golden(Cache cache, const PairPlan& plan, std::int64_t block_bytes,
                                          std::span<std::byte> bytes) const {
  const int pe = shmem_my_pe();
  if (auto ok = read_cache(cache, Kind::kInput, pe, bytes); !ok) {
    return ok;
  }
  const PairRow& mine = plan[static_cast<std::size_t>(pe)];
  const PairRow& partner = plan[static_cast<std::size_t>(mine.partner)];
  if (partner.operation != kSend || mine.partner == pe) {
    return {};
  }
  std::vector<std::byte> theirs(bytes.size());
  if (auto ok = read_cache(cache, Kind::kInput, static_cast<int>(mine.partner), theirs); !ok) {
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
    return ok.error();
  }
  return table;
}

Result<void> ReferenceFolder::read_blocks(PairRow& row, int pe, std::int64_t blocks) const {
  const std::string count_path = file("block_num", pe);
  const auto count = read_table(count_path, 1, "one int64");
  if (!count) {
    return count.error();
  }
  // Each destination is named once, so that there are at most as many as the caches have.
  if (count->front() < 0 || count->front() > blocks) {
    return wrong(count_path, fmt::format("says {}, and the caches have {} blocks", count->front(), blocks));
  }
  for (auto* table : {&row.source, &row.destination}) {
    const std::string path = file(table == &row.source ? "src_block_table" : "dst_block_table", pe);
    auto read = read_table(path, count->front(), fmt::format("as many int64 as {} says", count_path));
    if (!read) {
      return read.error();
    }
    *table = *std::move(read);
    // The tables of a PE that does not send are not used.
    if (auto ok = check_blocks(path, *table, blocks); !ok && row.operation == kSend) {
      return ok;
    }
  }
  return row.operation == kSend ? check_once(file("dst_block_table", pe), row.destination) : Result<void>{};
}

Result<PairPlan> ReferenceFolder::read_plan(int pes, std::int64_t blocks) const {
  const std::string path = path_ + "/pair_list.bin";
  const auto rows =
      read_table(path, 2 * std::int64_t{pes}, fmt::format("two int64 for each of {} PEs (oshrun -n)", pes));
  if (!rows) {
    return rows.error();
  }
  PairPlan plan;
  for (std::size_t pe = 0; pe < static_cast<std::size_t>(pes); ++pe) {
    plan.push_back({.partner = (*rows)[2 * pe], .operation = (*rows)[2 * pe + 1]});
  }
  if (auto ok = check_pairs(path, plan); !ok) {
    return ok.error();
  }
  for (int pe = 0; pe < pes; ++pe) {
    if (auto ok = read_blocks(plan[static_cast<std::size_t>(pe)], pe, blocks); !ok) {
      return ok.error();
    }
  }
  return plan;
}

Result<void> ReferenceFolder::write_plan(const PairPlan& plan) const {
  const int pe = shmem_my_pe();
  const PairRow& mine = plan[static_cast<std::size_t>(pe)];
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
  for (const PairRow& row : plan) {
    rows.insert(rows.end(), {row.partner, row.operation});
  }
  return write(path_ + "/pair_list.bin", rows);
}

namespace {

constexpr Cache kCaches[] = {Cache::kK, Cache::kV};
/// The entire cache of one layer.
std::span<std::byte> all_of(const Caches& caches, Cache cache) {
  return {caches.bytes({0, cache}, 0).data(), static_cast<std::size_t>(caches.shape().bytes_of_object())};
}

}  // namespace

Result<void> ReferenceFolder::read_inputs(const Caches& caches) const {
  for (const Cache cache : kCaches) {
    if (auto ok = read_cache(cache, Kind::kInput, shmem_my_pe(), all_of(caches, cache)); !ok) {
      return ok;
    }
  }
  return {};
}

Result<void> ReferenceFolder::write_caches(Kind kind, const Caches& caches) const {
  for (const Cache cache : kCaches) {
    if (auto ok = write_cache(cache, kind, all_of(caches, cache)); !ok) {
      return ok;
    }
  }
  return {};
}

Result<void> ReferenceFolder::compare_with_golden(const Caches& caches, const PairPlan& plan) const {
  const int pe = shmem_my_pe();
  const std::int64_t block_bytes = caches.shape().bytes_of_part();
  const bool given = has_golden();
  for (const Cache cache : kCaches) {
    const auto found = all_of(caches, cache);
    std::vector<std::byte> right(found.size());
    auto ok = given ? read_cache(cache, Kind::kGolden, pe, right) : make_golden(cache, plan, block_bytes, right);
    if (!ok) {
      return ok;
    }
    const auto at = std::mismatch(right.begin(), right.end(), found.begin()).first - right.begin();
    if (at != static_cast<std::ptrdiff_t>(right.size())) {
      return fail(std::errc::bad_message,
                  fmt::format("byte {} of block {} of the {} cache of PE {} is not that of {}", at % block_bytes,
                              at / block_bytes, cache == Cache::kK ? "K" : "V", pe,
                              given ? cache_file(cache, Kind::kGolden, pe) : "inputs and tables"));
    }
  }
  return {};
}

Result<void> ReferenceFolder::write_golden(const Shape& shape, const PairPlan& plan) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.bytes_of_object()));
  for (const Cache cache : kCaches) {
    auto ok = make_golden(cache, plan, shape.bytes_of_part(), bytes);
    if (ok) {
      ok = write_cache(cache, Kind::kGolden, bytes);
    }
    if (!ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace kv_program
