// SPDX-License-Identifier: Apache-2.0
#include "wire/ucx/message_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace wire {

namespace {

using PortClock = std::chrono::steady_clock;

/// The id of its messages among those of a worker.
constexpr unsigned kPortMessages = 1;
constexpr std::chrono::seconds kLongestPortSleep{1};
/// How long a port that ends waits for its endpoints to close, and how long one stays that no route needs any more.
constexpr std::chrono::milliseconds kPortCloseLimit{500};
constexpr std::chrono::seconds kAnswerLimit{5};
constexpr std::chrono::milliseconds kPauseWithoutMemory{10};

/// The port whose thread this is.
thread_local const UcxMessagePort* port_of_this_thread = nullptr;

}  // namespace

UcxMessagePort::UcxMessagePort(std::unique_ptr<UcxWorker> worker, PortHandlers handlers)
    : worker_(std::move(worker)), handlers_(std::move(handlers)) {
  receive_by(*worker_, kPortMessages, on_message, this);
}

Result<void> UcxMessagePort::start() {
  auto thread = base::HelperThread::start([this] { run(); });
  if (!thread) {
    return thread.error();
  }
  thread_ = *std::move(thread);
  return {};
}

UcxMessagePort::~UcxMessagePort() {
  stop_.store(true, std::memory_order_relaxed);
  worker_->wake();
  thread_.join();
}

std::uint64_t UcxMessagePort::version() const {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  worker_->calls().get_version(&major, &minor, &release);
  return std::uint64_t{major} << 32 | minor;
}

std::string UcxMessagePort::describe() const {
  return fmt::format("ucx {} ({})", ucx_version(worker_->calls()), worker_->transports());
}

std::uint64_t UcxMessagePort::open(std::vector<std::byte> address) {
  const std::uint64_t number = last_route_.fetch_add(1, std::memory_order_relaxed) + 1;
  add({Order::Kind::kOpen, number, std::move(address), {}});
  return number;
}

void UcxMessagePort::close(std::uint64_t route) {
  add({Order::Kind::kClose, route, {}, {}});
}

void UcxMessagePort::send(std::uint64_t route, PortMessage message) {
  add({Order::Kind::kSend, route, {}, std::move(message)});
}

void UcxMessagePort::add(Order order) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = orders_.empty();
    orders_.push_back(std::move(order));
  }
  // The port's own thread carries out what its handlers order before it sleeps.
  if (first && port_of_this_thread != this) {
    worker_->wake();
  }
}

void UcxMessagePort::run() {
  port_of_this_thread = this;
  // Relaxed: the signal ends the sleep, and the thread looks again.
  while (!stop_.load(std::memory_order_relaxed)) {
    try {
      if (!turn()) {
        worker_->sleep(kLongestPortSleep);
      }
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPauseWithoutMemory);
    }
  }
  const auto deadline = PortClock::now() + kPortCloseLimit;
  while (PortClock::now() < deadline) {
    try {
      carry_out();
      close_all();
      finish_closing();
      break;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPauseWithoutMemory);
    }
  }
  finish_answers();
}

/// False: there was nothing to do.
bool UcxMessagePort::turn() {
  bool busy = worker_->progress();
  busy |= carry_out();
  report_connections();
  busy |= report_failures();
  busy |= handlers_.turn();
  return busy;
}

void UcxMessagePort::close_all() {
  routes_.clear();
  while (!peers_.empty()) {
    end(peers_.back());
    peers_.pop_back();
  }
}

bool UcxMessagePort::carry_out() {
  if (carried_.empty()) {
    const std::lock_guard lock(mutex_);
    carried_.swap(orders_);
  }
  const bool any = !carried_.empty();
  for (; next_carried_ < carried_.size(); ++next_carried_) {
    carry_out(carried_[next_carried_]);
  }
  carried_.clear();
  next_carried_ = 0;
  look_after_peers();
  std::erase_if(closing_, [&](const Closing& closing) {
    if (closing.request != nullptr && worker_->calls().request_check_status(closing.request) == UCS_INPROGRESS) {
      return false;
    }
    if (closing.request != nullptr) {
      worker_->calls().request_free(closing.request);
    }
    return true;
  });
  return any;
}

void UcxMessagePort::carry_out(Order& order) {
  if (order.kind == Order::Kind::kOpen) {
    return open_route(order.route, order.address);
  }
  const auto found = routes_.find(order.route);
  if (order.kind == Order::Kind::kClose && found != routes_.end()) {
    close_route(order.route);
  } else if (order.kind == Order::Kind::kSend) {
    if (found != routes_.end() && !found->second->failed) {
      transmit(*found->second, order.message);
    } else if (order.message.under_way != nullptr) {
      order.message.under_way->fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

/// One endpoint for all routes to a process: UCX pairs the endpoints of two processes in the order in which they were
/// made.
void UcxMessagePort::open_route(std::uint64_t number, const std::vector<std::byte>& address) {
  const auto found = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const auto& peer) { return !peer->failed && peer->address == address; });
  if (found != peers_.end()) {
    Peer& peer = **found;
    routes_[number] = &peer;
    if (std::find(peer.routes.begin(), peer.routes.end(), number) == peer.routes.end()) {
      peer.routes.push_back(number);
    }
    return;
  }
  auto made = std::make_unique<Peer>();
  made->all = this;
  made->address = address;
  made->routes.push_back(number);
  peers_.reserve(peers_.size() + 1);
  routes_[number] = made.get();
  connect(*peers_.emplace_back(std::move(made)));
}

void UcxMessagePort::close_route(std::uint64_t number) {
  Peer& peer = *routes_.at(number);
  routes_.erase(number);
  const auto at = std::find(peer.routes.begin(), peer.routes.end(), number);
  if (at != peer.routes.end()) {
    const auto place = static_cast<std::size_t>(at - peer.routes.begin());
    peer.told_connected -= place < peer.told_connected ? 1 : 0;
    peer.told_failed -= place < peer.told_failed ? 1 : 0;
    peer.routes.erase(at);
  }
  if (peer.routes.empty()) {
    peer.end_at = PortClock::now() + kPortCloseLimit;
  }
}

/// Ends those that no route has needed for a while. At once, UCX would answer what a process has sent before it left by
/// a new endpoint, which would try to reach that process: see Links::welcome().
void UcxMessagePort::look_after_peers() {
  for (auto one = peers_.begin(); one != peers_.end();) {
    Peer& peer = **one;
    const auto status = peer.flush != nullptr ? worker_->calls().request_check_status(peer.flush) : UCS_INPROGRESS;
    if (status != UCS_INPROGRESS) {
      worker_->calls().request_free(std::exchange(peer.flush, nullptr));
      finish_connecting(peer, status);
    }
    if (peer.routes.empty() && (peer.failed || PortClock::now() >= peer.end_at)) {
      end(*one);
      one = peers_.erase(one);
    } else {
      ++one;
    }
  }
}

void UcxMessagePort::connect(Peer& peer) {
  const auto made = worker_->connect(peer.address, on_failure, &peer, peer.endpoint);
  if (made != UCS_OK) {
    return fail(peer, made);
  }
  // It is complete once there is a connection.
  ucp_request_param_t parameters{};
  void* const flush = worker_->calls().ep_flush_nbx(peer.endpoint, &parameters);
  if (UCS_PTR_IS_PTR(flush)) {
    peer.flush = flush;
  } else {
    finish_connecting(peer, UCS_PTR_STATUS(flush));
  }
}

void UcxMessagePort::finish_connecting(Peer& peer, ucs_status_t status) {
  if (status != UCS_OK) {
    return fail(peer, status);
  }
  peer.connected = true;
}

void UcxMessagePort::transmit(Peer& peer, PortMessage& message) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): UCX keeps it until it calls back
  auto* sending = new Sending{this, std::move(message)};
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  parameters.cb.send = on_sent;
  parameters.user_data = sending;
  ++sending_;
  const PortMessage& content = sending->message;
  void* request = worker_->calls().am_send_nbx(peer.endpoint, kPortMessages, content.head.data(), content.head.size(),
                                               content.body.get(), content.bytes, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    return;
  }
  const auto status = UCS_PTR_STATUS(request);
  on_sent(nullptr, status, sending);
  if (status != UCS_OK) {
    fail(peer, status);
  }
}

void UcxMessagePort::on_sent(void* request, ucs_status_t /*status*/, void* sending) {
  const std::unique_ptr<Sending> sent(static_cast<Sending*>(sending));
  --sent->all->sending_;
  if (request != nullptr) {
    sent->all->worker_->calls().request_free(request);
  }
  if (sent->message.under_way != nullptr) {
    // Relaxed: the thread that calls turn() is this one.
    sent->message.under_way->fetch_sub(1, std::memory_order_relaxed);
  }
}

void UcxMessagePort::on_failure(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  Peer& failed = *static_cast<Peer*>(peer);
  failed.all->fail(failed, status);
}

void UcxMessagePort::fail(Peer& peer, ucs_status_t status) const {
  if (!std::exchange(peer.failed, true)) {
    peer.why = worker_->calls().status_string(status);
  }
}

void UcxMessagePort::report_connections() {
  for (const auto& peer : peers_) {
    for (; peer->connected && peer->told_connected < peer->routes.size(); ++peer->told_connected) {
      if (handlers_.connected) {
        handlers_.connected(peer->routes[peer->told_connected]);
      }
    }
  }
}

bool UcxMessagePort::report_failures() {
  bool any = false;
  for (const auto& peer : peers_) {
    for (; peer->failed && peer->told_failed < peer->routes.size(); ++peer->told_failed) {
      handlers_.lost(peer->routes[peer->told_failed], peer->why);
      any = true;
    }
  }
  return any;
}

ucs_status_t UcxMessagePort::on_message(void* port, const void* header, std::size_t header_length, void* data,
                                        std::size_t length, const ucp_am_recv_param_t* parameters) {
  if (!is_whole(*parameters)) {
    return UCS_OK;  // no port sends such a message
  }
  try {
    static_cast<UcxMessagePort*>(port)->handlers_.receive(bytes_of(header, header_length), bytes_of(data, length));
  } catch (const std::bad_alloc&) {
    // No exception leaves a callback of UCX. The message is lost, and its sender waits until its limit.
  }
  return UCS_OK;
}

/// Begins to close its endpoint, and takes it. By force: no caller waits for what was not sent.
void UcxMessagePort::end(std::unique_ptr<Peer>& peer) {
  if (peer->endpoint == nullptr) {
    return;
  }
  closing_.reserve(closing_.size() + 1);  // before UCX is told
  peer->failed = true;
  void* const request = worker_->close(peer->endpoint, true);
  if (peer->flush != nullptr) {
    worker_->calls().request_free(std::exchange(peer->flush, nullptr));
  }
  closing_.push_back({std::move(peer), request});
}

void UcxMessagePort::finish_closing() {
  const auto deadline = PortClock::now() + kPortCloseLimit;
  while ((!closing_.empty() || sending_ > 0) && PortClock::now() < deadline) {
    if (!worker_->progress()) {
      worker_->sleep(std::chrono::milliseconds{1});
    }
    carry_out();
  }
}

/// UCX answers connections of other processes by endpoints of its own. UCX 1.13 ends the process if such an answer has
/// not been sent when the worker is destroyed.
void UcxMessagePort::finish_answers() {
  ucp_request_param_t parameters{};
  worker_->finish(worker_->calls().worker_flush_nbx(worker_->worker(), &parameters), PortClock::now() + kAnswerLimit);
}

Result<std::unique_ptr<MessagePort>> make_message_port(PortHandlers handlers, bool rdma_only,
                                                       const std::string& library) {
  if (auto threads = check_ucx_threads(); !threads) {
    return threads.error();
  }
  const auto calls = load_ucx(library);
  if (!calls) {
    return calls.error();
  }
  constexpr std::size_t kUsualRoutes = 8;
  auto worker = UcxWorker::create(*calls, kUsualRoutes, false, rdma_only);
  if (!worker) {
    return worker.error();
  }
  auto port = std::make_unique<UcxMessagePort>(*std::move(worker), std::move(handlers));
  if (auto started = port->start(); !started) {
    return started.error();
  }
  return std::unique_ptr<MessagePort>(std::move(port));
}

}  // namespace wire
