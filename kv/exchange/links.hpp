// SPDX-License-Identifier: Apache-2.0
// Links between members on different nodes: a thread listens, connects to the members that it has heard of, lets those
// in that know the secret, and notices the end of each.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/helper_thread.hpp"
#include "kv/exchange/counters.hpp"
#include "kv/exchange/link_connection.hpp"
#include "shmem/result.hpp"
#include "wire/listener.hpp"

namespace shmem::exchange {

/// Members on other nodes that a member reads from, or that read from it.
constexpr std::size_t kMostLinks = 256;

/// What a member tells those at the other ends.
struct LinkSelf {
  std::string exchange{};  // its name, for messages
  LinkIdentity who;
  std::uint32_t slots = 0;
  Secret secret{};
  std::vector<std::byte> address{};  // of its message port
};

struct LinkedReader {
  std::uint64_t member;
  std::uint64_t session;  // of its requests
  std::uint64_t answers;  // its number, for the answers
  std::vector<std::byte> address;
};

struct LinkedOwner {
  LinkIdentity who;
  std::uint64_t session;   // of its answers
  std::uint64_t requests;  // its number, for the requests
  std::uint32_t slots;
  std::string place;
  std::vector<std::byte> address;
};

/// What the thread calls. Each session is told the end of once; afterwards it is not used again.
struct LinkHandlers {
  /// False: this reader cannot be served. Otherwise it is linked after Links::welcome().
  std::function<bool(LinkedReader)> reader_came;
  std::function<void(std::uint64_t session)> reader_left;
  std::function<bool(LinkedOwner)> owner_came;
  std::function<void(std::uint64_t session)> owner_left;
};

/// Thread-safe.
class Links {
 public:
  using Clock = LinkConnection::Clock;

  /// Listens at `place`, which gets the port if it had none. `counters` outlives this.
  static Result<std::unique_ptr<Links>> open(Endpoint& place, LinkSelf self, LinkHandlers handlers, Counters& counters);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  /// Afterwards no handler is called.
  ~Links();

  /// Looks for members at these places from now on.
  void look_for(const std::vector<Endpoint>& seeds);
  /// Waits until each place of look_for() has answered or failed once, for at most `limit`. Error: EACCES a member does
  /// not know the secret, or has another version of something.
  Result<void> await_seeds(std::chrono::milliseconds limit);
  Result<void> connect(const std::vector<Endpoint>& seeds, std::chrono::milliseconds limit) {
    look_for(seeds);
    return await_seeds(limit);
  }
  /// Links the reader that has come with this session: messages reach it.
  void welcome(std::uint64_t session);
  /// Ends the link of this session: the other end has not kept to the protocol, or does not answer. `pause`: before
  /// this member connects to it again.
  void drop(std::uint64_t session, std::chrono::milliseconds pause = {});

 private:
  using Connection = LinkConnection;
  struct LinkTarget {
    Endpoint endpoint;
    bool is_seed = false;
    bool was_linked = false;
    bool is_busy = false;  // a connection is being made, or exists
    bool was_tried = false;
    unsigned failures = 0;  // in a row
    Clock::time_point next{};
    bool is_reached = false;  // a member answers there
    bool is_told = false;     // that none does
    Clock::time_point silent_since{};
    std::string why{};  // the last attempt has failed; "": it got no answer
  };

  Links(base::UniqueFd listener, const Endpoint& place, base::UniqueFd wake, LinkSelf self, LinkHandlers handlers,
        Counters& counters);
  struct Order {
    std::uint64_t session;
    std::chrono::milliseconds pause;
  };

  void run();
  void turn();
  [[nodiscard]] int poll_limit() const;
  void handle(Connection& connection, short events);
  bool go_on(Connection& connection, short events);
  void accept();
  void make_room();
  void try_places();
  void tell_joined();
  /// Warns once of a place that the program has named and at which no member has answered for some time.
  void tell_unreachable();
  void take_orders();

  // False: the connection is over.
  bool take_frames(Connection& connection);
  bool take(Connection& connection, const Frame& frame);
  bool greet(Connection& connection);
  bool challenge(Connection& connection, const Frame& frame);
  bool prove(Connection& connection, const Frame& frame);
  bool admit(Connection& connection, const Frame& frame);
  bool welcome(Connection& connection);
  bool join(Connection& connection, const Frame& frame);
  bool refuse(Connection& connection, const std::string& why);
  /// Why the other side, or this one, cannot be understood; empty: it can.
  [[nodiscard]] std::string mismatch(const LinkIdentity& other) const;

  void drop(Connection& connection, std::chrono::milliseconds pause = {});
  /// What follows from its end. Without memory, it is done again in the next turn.
  void forget(Connection& connection);
  void leave_place(const Connection& connection, LinkTarget& place);
  void erase_dropped();
  void note_refusal(Connection& connection, const std::string& why);
  /// Where the address of a member comes from: this program, that member, or another member.
  enum class Source { kProgram, kItself, kOther };
  void add_place(const Endpoint& endpoint, Source source);
  void forget_place();
  /// Null: it has been forgotten.
  LinkTarget* find_place(const Connection& connection) {
    const auto found = places_.find(connection.place.text());
    return found != places_.end() ? &found->second : nullptr;
  }
  void send_members(Connection& connection);
  [[nodiscard]] Connection* find_member(std::uint64_t member, bool outgoing) const;
  /// The number of connections in this direction whose other end has proved that it knows the secret, or has not.
  [[nodiscard]] std::size_t count(bool outgoing, bool proved) const;
  void note_reached(const Connection& connection);
  static std::uint64_t random_number();

  const LinkSelf self_;
  const Endpoint place_;
  const LinkHandlers handlers_;
  Counters& counters_;
  wire::Listener listener_;
  base::UniqueFd wake_;
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // for the next six
  std::condition_variable joined_changed_;
  bool joined_ = false;
  std::string refusal_;  // of a seed
  std::vector<Endpoint> new_seeds_;
  std::vector<std::uint64_t> to_welcome_;
  std::vector<Order> to_drop_;

  // Only the thread uses these.
  std::vector<Endpoint> seeds_;  // to be added to the places
  std::map<std::string, LinkTarget> places_;
  std::vector<std::unique_ptr<Connection>> connections_;

  base::HelperThread thread_;  // last: it uses the others
};

}  // namespace shmem::exchange
