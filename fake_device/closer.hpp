// SPDX-License-Identifier: Apache-2.0
// What clients gave - sockets, files, eventfds, memory - and how it is closed without waiting.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "base/fd.hpp"
#include "base/mapping.hpp"

namespace fake_device {

struct FdAccount;

/// Something to be closed or unmapped.
struct ClosingItem {
  base::UniqueFd fd;
  base::Mapping mapping;
  std::shared_ptr<FdAccount> account;
  bool is_connection = false;
};

/// What waits to be closed, of one kind and one user, for which it has a thread. Belongs to the closer, whose mutex
/// guards what is not atomic.
struct ClosingLane {
  std::list<ClosingItem> queue;
  std::list<ClosingLane*> place{this};  // one element, here or among those without a thread: moving needs no memory
  bool served = false;                  // has a thread, or is among those without one
  bool sleeps = false;                  // its thread waits for more
  std::atomic<std::size_t> behind = 0;  // so many were added since some were closed
  std::atomic<std::chrono::steady_clock::time_point> closing_since{};  // 0: nothing is being closed
};

/// The clients of one user.
struct FdUser {
  ClosingLane files;
  ClosingLane connections;            // of their own, so that clients can be disconnected whose files cannot be closed
  std::atomic<std::size_t> open = 0;  // descriptors of all its clients
};

/// Descriptors of one client that are open here. Those being closed count too.
struct FdAccount {
  explicit FdAccount(std::shared_ptr<FdUser> of = std::make_shared<FdUser>()) : user(std::move(of)) {}
  const std::shared_ptr<FdUser> user;
  std::atomic<std::size_t> open = 0;
  std::atomic<std::size_t> waiting = 0;  // of these, to be closed
};

/// Closes descriptors and unmaps memory on a thread for the files of each user, and one for its connections. Closing
/// waits for as long as the client likes if it gave a file of a file system that it serves itself (FUSE); the last
/// unmapping of a large file frees all of its pages. Others of that user wait meanwhile, those of other users do not.
/// The wait for a socket that lingers is cut short. Any thread may use it. Takes the first real-time signal of the
/// process.
class Closer {
 public:
  using Close = void (*)(int fd);
  /// The most descriptors that the kernel passes at once.
  static constexpr std::size_t kMostAtOnce = 253;

  /// `files`: how many this process may open. From the part of them that is for clients follows when full() and
  /// exhausted() are.
  explicit Closer(std::size_t files = open_file_limit(), Close close = close_one);
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
  /// Does not wait for what takes long.
  ~Closer();

  /// No more descriptors are to be kept, of this user: a quarter of the room is left to others.
  [[nodiscard]] bool full(const FdUser& user) const;
  /// None are to be received of this user, not even to be closed: it has half of what full() leaves to others, too.
  /// A thread that gets a processor late finds all of them open.
  [[nodiscard]] bool overfull(const FdUser& user) const;
  /// There might be no room to receive any: the kernel would close them on the spot.
  [[nodiscard]] bool exhausted() const;
  /// Files of this user wait, a large part of all that can be open, and one of them cannot be closed.
  [[nodiscard]] bool stuck(const FdUser& user) const;
  /// Whether all that was handed over is closed, waiting up to `milliseconds` for it.
  [[nodiscard]] bool done(unsigned milliseconds) const;

  static std::size_t open_file_limit();
  static void close_one(int fd);

 private:
  friend class Given;
  struct State;
  static void work(const std::shared_ptr<State>& state, const std::shared_ptr<FdUser>& user, ClosingLane& lane);
  static void add(const std::shared_ptr<State>& state, std::list<ClosingItem>& item);
  static void work_for_others(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

/// A descriptor or a mapping that a client gave; the closer gets it when the object ends. Used by one thread.
class Given {
 public:
  Given() = default;
  /// `is_connection`: the socket of the client itself.
  Given(Closer& closer, std::shared_ptr<FdAccount> account, base::UniqueFd fd, bool is_connection = false);
  /// A mapping of `file`, in its client's account.
  Given(const Given& file, base::Mapping mapping);
  Given(Given&& other) noexcept;
  Given& operator=(Given&& other) noexcept;
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  ~Given();

  [[nodiscard]] int get() const { return item_.empty() ? -1 : item_.front().fd.get(); }
  [[nodiscard]] const base::Mapping& mapping() const { return item_.front().mapping; }
  explicit operator bool() const { return !item_.empty(); }

 private:
  std::shared_ptr<Closer::State> state_;
  std::list<ClosingItem> item_;  // none or one: handing it over needs no memory
};

}  // namespace fake_device
