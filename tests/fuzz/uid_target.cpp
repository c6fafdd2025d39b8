// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "shmem/bootstrap/tcp.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"
#include "wire/endpoint.hpp"

namespace fuzz {
namespace {

using namespace std::chrono_literals;
using base::UniqueFd;
using shmem::UniqueId;
using wire::Endpoint;

constexpr std::chrono::milliseconds kLimit = 20s;
constexpr unsigned kStrangers = 8;
constexpr std::size_t kEnding = 32;

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + kLimit;
}

/// A new loopback address each time: after a connection is closed, its port is not free for a minute.
Endpoint next_place() {
  static std::uint32_t number = 0;
  number = (number + 1) % 0xfffff;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
  return Endpoint::of(reinterpret_cast<const sockaddr*>(&address));
}

UniqueFd listen_here(Endpoint& place) {
  auto socket = wire::listen_at(place);
  check(socket.has_value(), "a loopback address can be listened at");
  return *std::move(socket);
}

/// A job of one PE. All other processes that connect are strangers.
class Job {
 public:
  Job() {
    id_.secret.fill(0x33);
    id_.place = next_place();
    auto server = shmem::UidServer::start(
        listen_here(id_.place),
        {.secret = id_.secret, .size = 1, .server = 0, .limit = kLimit, .place = id_.place.text()});
    check(server.has_value(), "the server starts");
    server_ = *std::move(server);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  /// A server runs for a second after its job has failed. The next input does not wait for that.
  ~Job() {
    static std::deque<std::future<void>> ending;
    server_->close();
    ending.push_back(std::async(std::launch::async, [server = std::move(server_)]() mutable { server.reset(); }));
    if (ending.size() > kEnding) {
      ending.pop_front();
    }
  }

  [[nodiscard]] const Endpoint& place() const { return id_.place; }
  /// Does all that a PE does. True if it succeeded.
  bool run_pe(const Endpoint& place) const {
    auto pe = shmem::TcpBootstrap::join({id_.secret, place}, {.rank = 0, .size = 1, .limit = kLimit, .grace = 1h});
    if (!pe) {
      return false;
    }
    const std::vector<std::byte> mine(100, std::byte{1});
    const auto all = (*pe)->allgather(mine);
    (*pe)->leave();
    return all && *all == mine;
  }

 private:
  UniqueId id_;
  std::unique_ptr<shmem::UidServer> server_;
};

void send(int socket, std::span<const std::byte> bytes) {
  // A server that has refused the sender may have closed the connection.
  static_cast<void>(wire::send_all(socket, bytes, soon()));
}

/// Reads until the other end closes.
void drain(int socket) {
  std::array<std::byte, 4096> buffer{};
  while (::recv(socket, buffer.data(), buffer.size(), 0) > 0) {
  }
}

/// Strangers connect, send what the input says, and disconnect or stay.
class Strangers {
 public:
  explicit Strangers(const Job& job) : job_(job) {}

  // u8: stranger and action; to send: u16 length, bytes.
  void act(Input& input) {
    const auto what = input.take<std::uint8_t>();
    const unsigned who = what % kStrangers;
    auto& socket = sockets_[who];
    if (!socket) {
      auto connected = wire::connect_to(job_.place(), soon());
      check(connected.has_value(), "the server listens until all PEs have come");
      socket = *std::move(connected);
    }
    switch (what / kStrangers % 4) {
      case 0:
      case 1:
        return send(socket.get(), input.take_bytes(input.take<std::uint16_t>()));
      case 2:  // waits until the server has read all
        ::shutdown(socket.get(), SHUT_WR);
        drain(socket.get());
        break;
      default: {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      }
    }
    socket.reset();
  }
  /// Waits until the server has read everything from every second stranger that stays.
  void finish() {
    for (auto& [number, socket] : sockets_) {
      if (socket && number % 2 == 0) {
        ::shutdown(socket.get(), SHUT_WR);
        drain(socket.get());
      }
    }
  }

 private:
  const Job& job_;
  std::map<unsigned, UniqueFd> sockets_;
};

/// Passes on up to 64 KiB. False at the end.
bool pass(int from, int to, std::vector<std::byte>& bytes) {
  bytes.resize(64 << 10);
  const auto got = ::recv(from, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (to >= 0) {
    send(to, bytes);
  }
  return got > 0;
}

/// A PE that knows the secret, but its bytes are changed at one place on their way.
// u16: the offset of the change; u8: how many bytes are removed; u8 length, bytes: what is inserted.
void run_changed_pe(const Job& job, Input& input) {
  std::size_t before = input.take<std::uint16_t>() % 512;
  std::size_t left_out = input.take<std::uint8_t>();
  auto added = std::optional(input.take_bytes(input.take<std::uint8_t>()));
  Endpoint place = next_place();
  UniqueFd listener = listen_here(place);
  std::thread pe([&] { job.run_pe(place); });
  pollfd waiting{listener.get(), POLLIN, 0};
  while (::poll(&waiting, 1, -1) < 0 && errno == EINTR) {  // libFuzzer's alarm
  }
  const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  listener.reset();  // a PE that is dropped before it is accepted would connect again
  auto server = wire::connect_to(job.place(), soon());
  check(client && server, "the PE and the server are connected");

  std::array<pollfd, 2> ends{pollfd{client.get(), POLLIN, 0}, pollfd{server->get(), POLLIN, 0}};
  std::vector<std::byte> bytes;
  // If neither end sends anything, the server waits for bytes that were removed.
  for (bool goes_on = true; goes_on && ::poll(ends.data(), ends.size(), 20) > 0;) {
    if (ends[1].revents != 0) {
      goes_on = pass(server->get(), client.get(), bytes);
    }
    if (goes_on && ends[0].revents != 0) {
      goes_on = pass(client.get(), -1, bytes);
      const std::size_t kept = std::min(before, bytes.size());
      before -= kept;
      const std::size_t cut = std::min(left_out, bytes.size() - kept);
      left_out -= cut;
      send(server->get(), std::span(bytes).first(kept));
      if (kept < bytes.size() && added) {
        send(server->get(), *std::exchange(added, std::nullopt));
      }
      send(server->get(), std::span(bytes).subspan(kept + cut));
    }
  }
  ::shutdown(client.get(), SHUT_RDWR);
  server->reset();
  pe.join();
}

}  // namespace

// First byte: the number of steps of strangers; 255: instead, a PE whose bytes are changed joins first.
void run_uid(std::span<const std::byte> bytes) {
  Input input(bytes);
  const auto steps = input.take<std::uint8_t>();
  const Job job;
  if (steps == 255) {
    run_changed_pe(job, input);
    // Ends the server at once if the changed PE has not joined.
    static_cast<void>(job.run_pe(job.place()));
    return;
  }
  Strangers strangers(job);
  for (unsigned step = 0; step < steps && !input.empty(); ++step) {
    strangers.act(input);
  }
  strangers.finish();
  check(job.run_pe(job.place()), "a PE of the job joins whatever strangers do");
}

}  // namespace fuzz
