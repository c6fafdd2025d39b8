// SPDX-License-Identifier: Apache-2.0
// A cable in user space: frames that enter one TAP interface leave another one later, or are lost.
//
//   slow_link PID_A NAME_A PID_B NAME_B DELAY_US LOSS_PER_MILLION KBIT_PER_SECOND SEED
//
// makes an interface NAME_A in the network of process PID_A, and NAME_B likewise, prints "ready" and forwards frames
// until it is killed. The same seed and frames give the same losses. 0 kbit/s: no limit.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <random>
#include <string>
#include <system_error>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

constexpr std::size_t kLongest = 65536;
/// As in a switch, frames that arrive while so many are waiting are lost.
constexpr std::size_t kMostWaiting = 1000;

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (fd_ < 0) {
      throw std::system_error(errno, std::generic_category(), path);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(fd_); }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// An interface in the network of a process. It is removed with the object.
class Tap {
 public:
  Tap(const std::string& pid, const std::string& name) : file_(entered(pid), O_RDWR | O_NONBLOCK) {
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
    if (::ioctl(file_.get(), TUNSETIFF, &request) != 0) {
      throw std::system_error(errno, std::generic_category(), "making the interface " + name);
    }
  }
  [[nodiscard]] int fd() const { return file_.get(); }

 private:
  /// The interface is made in the network that the file is opened in.
  static std::string entered(const std::string& pid) {
    const File network("/proc/" + pid + "/ns/net", O_RDONLY);
    if (::setns(network.get(), CLONE_NEWNET) != 0) {
      throw std::system_error(errno, std::generic_category(), "entering the network of process " + pid);
    }
    return "/dev/net/tun";
  }

  File file_;
};

struct Quality {
  Nanoseconds delay{};
  unsigned loss_per_million = 0;
  std::uint64_t kilobits = 0;
  unsigned seed = 0;
};

/// One direction of the cable.
class Direction {
 public:
  Direction(const Tap& from, const Tap& to, const Quality& quality)
      : from_(from), to_(to), quality_(quality), random_(quality.seed) {}

  /// Takes all frames that have arrived.
  void take() {
    for (ssize_t size = 0; (size = ::read(from_.fd(), buffer_.data(), buffer_.size())) > 0;) {
      if (random_() % 1'000'000 < quality_.loss_per_million || waiting_.size() >= kMostWaiting) {
        continue;
      }
      // A frame waits for the frames before it, takes the time of its bits, and then the delay.
      const auto bits = static_cast<std::uint64_t>(size) * 8;
      free_ = std::max(free_, Clock::now()) +
              Nanoseconds(quality_.kilobits == 0 ? 0 : bits * 1'000'000 / quality_.kilobits);
      waiting_.push_back({free_ + quality_.delay, {buffer_.begin(), buffer_.begin() + size}});
    }
  }

  /// Forwards the frames that are due. An interface that is down drops them.
  void give() {
    for (; !waiting_.empty() && waiting_.front().due <= Clock::now(); waiting_.pop_front()) {
      [[maybe_unused]] const auto lost =
          ::write(to_.fd(), waiting_.front().bytes.data(), waiting_.front().bytes.size());
    }
  }

  [[nodiscard]] Clock::time_point next() const {
    return waiting_.empty() ? Clock::time_point::max() : waiting_.front().due;
  }
  [[nodiscard]] int fd() const { return from_.fd(); }

 private:
  struct Frame {
    Clock::time_point due;
    std::vector<char> bytes;
  };

  const Tap& from_;
  const Tap& to_;
  const Quality quality_;
  std::mt19937 random_;
  Clock::time_point free_{};
  std::deque<Frame> waiting_;
  std::array<char, kLongest> buffer_{};
};

[[noreturn]] void carry(Direction& there, Direction& back) {
  while (true) {
    std::array<pollfd, 2> files{{{there.fd(), POLLIN, 0}, {back.fd(), POLLIN, 0}}};
    const auto next = std::min(there.next(), back.next());
    const auto wait = std::max(Nanoseconds{0}, std::chrono::duration_cast<Nanoseconds>(next - Clock::now()));
    const timespec limit{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    ::ppoll(files.data(), files.size(), next == Clock::time_point::max() ? nullptr : &limit, nullptr);
    for (Direction* direction : {&there, &back}) {
      direction->take();
      direction->give();
    }
  }
}

int run(const std::vector<std::string>& arguments) {
  const Tap a(arguments[0], arguments[1]);
  const Tap b(arguments[2], arguments[3]);
  const Quality quality{std::chrono::microseconds(std::stol(arguments[4])),
                        static_cast<unsigned>(std::stoul(arguments[5])), std::stoull(arguments[6]),
                        static_cast<unsigned>(std::stoul(arguments[7]))};
  Direction there(a, b, quality);
  Direction back(b, a, quality);
  std::puts("ready");
  std::fflush(stdout);
  carry(there, back);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 9) {
    std::fputs("Usage: slow_link PID_A NAME_A PID_B NAME_B DELAY_US LOSS_PER_MILLION KBIT_PER_SECOND SEED\n", stderr);
    return 2;
  }
  return run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::fprintf(stderr, "slow_link: %s\n", error.what());
  return 1;
}
