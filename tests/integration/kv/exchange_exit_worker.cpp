// SPDX-License-Identifier: Apache-2.0
// A process that ends while its threads are in calls of exchanges: exchange_exit_worker exit|return here|nodes STATUS.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shmemx.h"
#include "shmemx_exchange.h"

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "exchange_exit_worker: %s: %s\n", what, shmemx_error_text());
  ::_exit(100);
}

/// With `on_nodes`, on a node of its own, and connected with `members`.
shmemx_exchange_t* join(const std::string& name, bool on_nodes, const char* node, const char* members) {
  shmemx_exchange_t* exchange = nullptr;
  if (on_nodes) {
    ::setenv("SHMEM_HOST_ID", node, 1);
  }
  if (shmemx_exchange_open(name.c_str(), nullptr, &exchange) != 0) {
    die("open");
  }
  const shmemx_exchange_network_t network{
      .listen = "127.0.0.1:0", .members = members, .secret = "a secret", .answer_ms = 20'000, .reserved = {}};
  if (on_nodes && shmemx_exchange_connect(exchange, &network) != 0) {
    die("connect");
  }
  return exchange;
}

shmemx_exchange_key_t key_of(const char* text) {
  return {text, std::strlen(text)};
}

void publish(shmemx_exchange_t* owner, std::uint32_t region, const char* key) {
  shmemx_exchange_entry_t entry{};
  entry.key = key_of(key);
  entry.region = region;
  entry.bytes = kBytes;
  shmemx_exchange_publish(owner, &entry, 1);
}

/// Does not return from the thread.
void forever(std::function<void()> call) {
  std::thread([call = std::move(call)] {
    while (true) {
      call();
    }
  }).detach();
}

}  // namespace

int main(int argc, char** argv) {
  const bool exits = argc > 1 && std::strcmp(argv[1], "exit") == 0;
  const bool on_nodes = argc > 2 && std::strcmp(argv[2], "nodes") == 0;
  const int status = argc > 3 ? std::atoi(argv[3]) : 0;
  ::alarm(60);
  const std::string name = "exit-" + std::to_string(::getpid());
  shmemx_exchange_t* const owner = join(name, on_nodes, "1", nullptr);
  std::array<char, 64> address{};
  shmemx_exchange_address(owner, address.data(), address.size());
  shmemx_exchange_t* const reader = join(name, on_nodes, "2", address.data());
  shmemx_memory_t memory{.address = nullptr, .bytes = kBytes, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  if (shmemx_exchange_register(owner, &memory, &region) != 0) {
    die("register");
  }
  publish(owner, region, "block");
  shmemx_exchange_block_t block{};
  const auto key = key_of("block");
  int count = 0;
  for (int i = 0; i < 20'000 && count != 1; ++i) {
    count = shmemx_exchange_find(reader, &key, 1, 0, 60'000, &block);
    ::usleep(count == 1 ? 0 : 1000);
  }
  if (count != 1) {
    die("find");
  }
  for (int i = 0; i < 2; ++i) {
    forever([=, to = std::make_shared<std::vector<char>>(kBytes)] {
      void* const place = to->data();
      shmemx_exchange_pull(reader, &block, &place, 1, nullptr, nullptr);
    });
    forever([=, to = std::make_shared<std::vector<char>>(kBytes)] {
      void* const place = to->data();
      shmemx_exchange_transfer_t* transfer = nullptr;
      shmemx_exchange_pull(reader, &block, &place, 1, nullptr, &transfer);
      shmemx_exchange_wait(transfer, UINT64_MAX);
      shmemx_exchange_transfer_free(transfer);
    });
  }
  forever([=] {
    auto found = shmemx_exchange_block_t{};
    shmemx_exchange_find(reader, &key, 1, 0, 0, &found);
    shmemx_exchange_release(reader, &found, 1);
  });
  forever([=] {
    publish(owner, region, "other");
    const auto other = key_of("other");
    shmemx_exchange_withdraw(owner, &other, 1, 1'000'000);
  });
  forever([=] {
    shmemx_exchange_t* more = nullptr;
    shmemx_exchange_open(name.c_str(), nullptr, &more);
    shmemx_exchange_close(more);
  });
  ::usleep(100'000);
  if (exits) {
    std::exit(status);
  }
  return status;
}
