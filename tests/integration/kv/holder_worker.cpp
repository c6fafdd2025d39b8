// SPDX-License-Identifier: Apache-2.0
// An engine that puts one block after the other into the holder: holder_worker EXCHANGE BOARD NUMBER ANSWER_MS.
//
// It ends with 3 if the block that the holder has confirmed last, perhaps to a process before this one, is not there or
// has wrong bytes.
#include "tests/integration/kv/holder_worker.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "shmemx.h"
#include "shmemx_exchange.h"

namespace {

using namespace holder_worker;  // NOLINT(google-build-using-namespace): the program itself

int fail(const char* what, int status) {
  std::printf("%s: %d %s\n", what, status, shmemx_error_text());
  return 3;
}

int check_last(shmemx_exchange_t* exchange, std::size_t worker, const Work& work) {
  const std::uint64_t last = work.stored.load();
  if (last == 0) {
    return 0;
  }
  const std::string text = key_of(worker, last);
  const shmemx_exchange_key_t key{text.data(), text.size()};
  shmemx_exchange_block_t block{};
  // On a busy machine the holder's directory arrives a moment after open has returned.
  for (int i = 0; i < 20'000 && shmemx_exchange_find(exchange, &key, 1, kLayout, 0, &block) != 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (block.status != 0) {
    std::printf("members: %d, last %lu\n", shmemx_exchange_members(exchange, nullptr, 0), last);
    return fail("find", block.status);
  }
  std::string bytes(block.bytes, '\0');
  void* const to = bytes.data();
  const int code = shmemx_exchange_pull(exchange, &block, &to, 1, nullptr, nullptr);
  return code != 0 || bytes != block_of(text, bytes_of(last)) ? fail("pull", code) : 0;
}

/// There is no holder, it is stopped, or this process was for so long that it has lost the lease of a range.
bool is_absence(int status) {
  return status == -ENOTCONN || status == -EOWNERDEAD || status == -ETIMEDOUT || status == -ESTALE;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    return 2;
  }
  SharedBoard board(argv[2]);
  const auto worker = static_cast<std::size_t>(std::atoi(argv[3]));
  shmemx_exchange_t* exchange = nullptr;
  if (!board || worker >= kWorkers || shmemx_exchange_open(argv[1], nullptr, &exchange) != 0 ||
      shmemx_exchange_use_holder(exchange, "workers", static_cast<std::uint32_t>(std::atoi(argv[4]))) != 0) {
    return fail("open", 0);
  }
  Work& work = board->work[worker];
  if (const int code = check_last(exchange, worker, work); code != 0) {
    return code;
  }
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::uint64_t number = work.begun.load() + 1;; ++number) {
    const std::string key = key_of(worker, number);
    const std::string block = block_of(key, bytes_of(number));
    shmemx_exchange_put_t put{.key = {key.data(), key.size()},
                              .source = block.data(),
                              .bytes = block.size(),
                              .layout = kLayout,
                              .status = 1,
                              .flags = 0};
    work.begun.store(number);
    const auto begin = std::chrono::steady_clock::now();
    shmemx_exchange_put(exchange, &put, 1);
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin);
    work.longest_ns.store(std::max<std::uint64_t>(work.longest_ns.load(), static_cast<std::uint64_t>(took.count())));
    if (put.status == 0) {
      work.stored.store(number);
    } else if (is_absence(put.status)) {
      work.failed.fetch_add(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else {
      work.wrong.store(put.status);
    }
  }
}
