// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/remote_members.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

namespace shmem::exchange {
namespace {

std::span<const std::uint8_t> octets_of(const auto& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// "": the namespace of the network; else the folder, by whatever path a process has it.
std::string text_of_place(const std::string& folder) {
  struct stat status {};
  if (folder.empty() || ::stat(folder.c_str(), &status) != 0) {
    return std::to_string(base::network_namespace()) + "/" + std::to_string(::geteuid());
  }
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

}  // namespace

std::uint64_t node_number(const base::Machine& machine, const std::string& host_id, const std::string& folder) {
  std::string text(machine.boot.data(), machine.boot.size());
  if (folder.empty()) {  // else members have network namespaces, and adapters, of their own
    text.append(reinterpret_cast<const char*>(machine.hardware.data()), machine.hardware.size());
  }
  if (machine.boot[0] == '\0') {
    text.append(machine.host.data(), machine.host.size());
  }
  text += text_of_place(folder) + "/" + host_id;
  const Proof digest = wire::sign({}, "libshmem: a node of an exchange", octets_of(text));
  std::uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof number);
  return number;
}

namespace {

/// A member whose calls got no answer from another one connects to it again after this; twice as long each time.
constexpr std::chrono::seconds kFirstSilence{1};
constexpr std::chrono::minutes kLongestSilence{2};
/// A member that has answered for so long counts as one that always has.
constexpr std::chrono::minutes kForgetSilence{30};
constexpr std::size_t kMostSilences = 512;
constexpr std::chrono::milliseconds kMemoryPause{10};

/// In the thread of UCX, which no exception may end: what a message without memory was for times out. False: there was
/// none.
template <typename Call>
bool if_memory(Call call) {
  try {
    call();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool is_request(RemoteKind kind) {
  return kind < RemoteKind::kFound;
}

}  // namespace

Result<std::unique_ptr<RemoteMembers>> RemoteMembers::open(DirectoryReader directory, const RemoteSettings& settings,
                                                           Counters& counters) {
  std::unique_ptr<RemoteMembers> members(new RemoteMembers(std::move(directory), settings, counters));
  auto port = wire::make_message_port(members->port_handlers(), settings.rdma_only);
  if (!port) {
    return port.error();
  }
  members->port_ = *std::move(port);
  return members;
}

Result<void> RemoteMembers::listen(Endpoint place) {
  auto secret = wire::derive_secret(settings_.secret, "exchange " + settings_.exchange);
  if (!secret) {
    return secret.error();
  }
  LinkSelf self{.exchange = settings_.exchange,
                .who = {.member = settings_.member,
                        .node = node_number(base::this_machine(), settings_.host_id, settings_.folder),
                        .version = port_->version(),
                        .messages = kRemoteProtocol,
                        .pid = static_cast<std::uint32_t>(::getpid())},
                .slots = readers_.slots(),
                .secret = *secret,
                .address = port_->address()};
  const std::lock_guard lock(links_mutex_);
  auto links = Links::open(place, std::move(self), link_handlers(), counters_);
  if (!links) {
    return links.error();
  }
  links_ = *std::move(links);
  place_ = place.text();
  return {};
}

RemoteMembers::RemoteMembers(DirectoryReader directory, const RemoteSettings& settings, Counters& counters)
    : counters_(counters),
      settings_(settings),
      readers_(std::move(directory), settings.limits,
               [this](std::uint64_t route, PortMessage message) { port_->send(route, std::move(message)); }) {}

RemoteMembers::~RemoteMembers() {
  std::unique_ptr<Links> links;
  {
    const std::lock_guard lock(links_mutex_);
    links = std::move(links_);
  }
  links.reset();
  // Until the port has ended, its thread calls handlers that send by port_, which reset() would have made null.
  port_.get_deleter()(port_.get());
  static_cast<void>(port_.release());
}

LinkHandlers RemoteMembers::link_handlers() {
  return {.reader_came = [this](LinkedReader reader) { return add_reader(std::move(reader)); },
          .reader_left = [this](std::uint64_t session) { remove_reader(session); },
          .owner_came = [this](LinkedOwner owner) { return add_owner(std::move(owner)); },
          .owner_left = [this](std::uint64_t session) { remove_owner(session); }};
}

wire::PortHandlers RemoteMembers::port_handlers() {
  return {.receive = [this](auto head, auto body) { if_memory([&] { receive(head, body); }); },
          .connected = [this](std::uint64_t route) { if_memory([&] { welcome(route); }); },
          .lost = [this](std::uint64_t route, const std::string& /*why*/) { if_memory([&] { lose(route); }); },
          .turn =
              [this] {
                bool more = true;  // without memory: again, a little later
                if (!if_memory([&] { more = readers_.turn(); })) {
                  std::this_thread::sleep_for(kMemoryPause);
                }
                return more;
              }};
}

// ---- Messages ----

void RemoteMembers::receive(std::span<const std::byte> bytes, std::span<const std::byte> body) {
  const auto head = read_remote_head(bytes);
  if (!head) {
    return add(counters_.refused);
  }
  if (is_request(head->kind)) {
    switch (readers_.receive(*head, body)) {
      case RemoteReaders::Outcome::kDone:
        return;
      case RemoteReaders::Outcome::kForeign:  // or late: of a reader that has been dropped
        return add(counters_.refused);
      case RemoteReaders::Outcome::kInvalid:
        add(counters_.refused);
        return drop(head->session);
    }
  }
  const auto peer = find_session(head->session);
  if (peer == nullptr) {
    add(counters_.refused);
  } else if (peer->is_alive()) {
    const bool was_proved = peer->is_proved();
    if (!peer->receive(*head, body)) {
      peer->end(std::errc::bad_message);
      drop(head->session);
    } else if (!was_proved && peer->is_proved()) {
      const std::lock_guard lock(mutex_);
      list_peers();
    }
  }
}

void RemoteMembers::drop(std::uint64_t session, std::chrono::milliseconds pause) {
  const std::lock_guard lock(links_mutex_);
  if (links_ != nullptr) {
    links_->drop(session, pause);
  }
}

/// Calls got no answer from this member: they do not wait for it again until it answers.
void RemoteMembers::note_silence(const std::string& place, std::uint64_t session) {
  const auto now = std::chrono::steady_clock::now();
  std::chrono::milliseconds pause = kFirstSilence;
  {
    const std::lock_guard lock(silences_mutex_);
    if (silences_.size() >= kMostSilences && !silences_.contains(place)) {
      silences_.clear();
    }
    Silence& silence = silences_[place];
    silence.times = now - silence.last < kForgetSilence ? std::min(silence.times + 1, 16U) : 1;
    silence.last = now;
    pause = std::min<std::chrono::milliseconds>(kFirstSilence * (1U << (silence.times - 1)), kLongestSilence);
  }
  drop(session, pause);
}

std::optional<std::uint64_t> RemoteMembers::session_of(std::uint64_t route) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const auto& one) { return one.second == route; });
  return found != routes_.end() ? std::optional(found->first) : std::nullopt;
}

/// The member at the end of this route can be reached. If it is a reader, that is what its link waits for.
void RemoteMembers::welcome(std::uint64_t route) {
  if (const auto session = session_of(route)) {
    const std::lock_guard lock(links_mutex_);
    if (links_ != nullptr) {
      links_->welcome(*session);
    }
  }
}

/// UCX has lost a process: the end of the link follows, if that has not been noticed yet.
void RemoteMembers::lose(std::uint64_t route) {
  if (const auto session = session_of(route)) {
    if (const auto peer = find_session(*session); peer != nullptr) {
      peer->end(std::errc::owner_dead);
    }
    drop(*session);
  }
}

// ---- Links ----

std::shared_ptr<RemotePeer> RemoteMembers::find_session(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_session_.find(session);
  return found != by_session_.end() ? found->second : nullptr;
}

bool RemoteMembers::add_reader(LinkedReader reader) {
  const std::lock_guard lock(mutex_);  // the port can tell of the route at once
  const std::uint64_t route = port_->open(std::move(reader.address));
  if (!readers_.add(reader.session, route, reader.answers)) {
    port_->close(route);
    return false;
  }
  routes_[reader.session] = route;
  return true;
}

void RemoteMembers::remove_reader(std::uint64_t session) {
  readers_.remove(session);
  close_route(session);
}

void RemoteMembers::close_route(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  if (const auto found = routes_.find(session); found != routes_.end()) {
    port_->close(found->second);
    routes_.erase(found);
  }
}

bool RemoteMembers::add_owner(LinkedOwner owner) {
  bool on_probation = false;
  {
    const std::lock_guard lock(silences_mutex_);
    on_probation = silences_.contains(owner.place);
  }
  std::unique_lock lock(mutex_);  // the port can tell of the route at once
  const std::uint64_t route = port_->open(std::move(owner.address));
  std::uint32_t seat = kFirstRemoteSeat;
  while (std::any_of(by_session_.begin(), by_session_.end(),
                     [&](const auto& one) { return one.second->identity().seat == seat; })) {
    ++seat;
  }
  RemotePeer::Identity identity{.member = owner.who.member,
                                .seat = seat,
                                .pid = owner.who.pid,
                                .slots = owner.slots,
                                .requests = owner.requests,
                                .place = owner.place,
                                .on_probation = on_probation};
  const auto peer = std::make_shared<RemotePeer>(
      std::move(identity), settings_.answer_limit,
      [this, route](PortMessage message) { port_->send(route, std::move(message)); },
      [this, place = owner.place, session = owner.session] {
        if_memory([&] { note_silence(place, session); });  // called also by destructors
      });
  by_session_[owner.session] = peer;
  routes_[owner.session] = route;
  list_peers();
  lock.unlock();
  if (on_probation) {
    peer->probe();
  }
  return true;
}

void RemoteMembers::remove_owner(std::uint64_t session) {
  if (const auto peer = find_session(session); peer != nullptr) {
    peer->end(std::errc::owner_dead);
  }
  close_route(session);
  const std::lock_guard lock(mutex_);
  by_session_.erase(session);
  list_peers();
}

/// REQUIRES: mutex_.
void RemoteMembers::list_peers() {
  RemotePeerList list;
  for (const auto& [session, peer] : by_session_) {
    if (peer->is_proved()) {
      list.push_back(peer);
    }
  }
  std::sort(list.begin(), list.end(),
            [](const auto& one, const auto& other) { return one->identity().seat < other->identity().seat; });
  peers_ = std::make_shared<const RemotePeerList>(std::move(list));
}

}  // namespace shmem::exchange
