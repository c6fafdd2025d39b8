// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/helper_thread.hpp"
#include "wire/message_port.hpp"
#include "wire/ucx/worker.hpp"

namespace wire {

/// One thread alone calls UCX, so that no lock of this class is held while UCX calls back.
class UcxMessagePort final : public MessagePort {
 public:
  UcxMessagePort(std::unique_ptr<UcxWorker> worker, PortHandlers handlers);
  UcxMessagePort(const UcxMessagePort&) = delete;
  UcxMessagePort& operator=(const UcxMessagePort&) = delete;
  ~UcxMessagePort() override;
  Result<void> start();

  [[nodiscard]] const std::vector<std::byte>& address() const override { return worker_->address(); }
  [[nodiscard]] std::uint64_t version() const override;
  [[nodiscard]] std::string describe() const override;
  std::uint64_t open(std::vector<std::byte> address) override;
  void close(std::uint64_t route) override;
  void send(std::uint64_t route, PortMessage message) override;

 private:
  /// The process at the end of one or more routes.
  struct Peer {
    UcxMessagePort* all = nullptr;
    std::vector<std::byte> address;
    std::vector<std::uint64_t> routes{};
    std::chrono::steady_clock::time_point end_at{};  // if there is no route
    ucp_ep_h endpoint = nullptr;
    void* flush = nullptr;  // until it is connected
    bool connected = false;
    bool failed = false;
    const char* why = "";  // it has failed
    // Routes of which the handlers have been told that it is connected, and that it has failed: the first ones.
    std::size_t told_connected = 0;
    std::size_t told_failed = 0;
  };
  /// What a call of another thread wants.
  struct Order {
    enum class Kind { kOpen, kClose, kSend };
    Kind kind;
    std::uint64_t route;
    std::vector<std::byte> address;
    PortMessage message;
  };
  struct Sending {
    UcxMessagePort* all = nullptr;
    PortMessage message;
  };

  static ucs_status_t on_message(void* port, const void* header, std::size_t header_length, void* data,
                                 std::size_t length, const ucp_am_recv_param_t* parameters);
  static void on_sent(void* request, ucs_status_t status, void* sending);
  static void on_failure(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  void add(Order order);
  void run();
  bool turn();
  void close_all();
  bool carry_out();
  void carry_out(Order& order);
  void open_route(std::uint64_t number, const std::vector<std::byte>& address);
  void close_route(std::uint64_t number);
  void connect(Peer& peer);
  void finish_connecting(Peer& peer, ucs_status_t status);
  void look_after_peers();
  void transmit(Peer& peer, PortMessage& message);
  void fail(Peer& peer, ucs_status_t status) const;
  void end(std::unique_ptr<Peer>& peer);
  /// Waits a little for the endpoints that are being closed.
  void finish_closing();
  void finish_answers();
  void report_connections();
  bool report_failures();

  const std::unique_ptr<UcxWorker> worker_;
  const PortHandlers handlers_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> last_route_{0};

  std::mutex mutex_;  // for the next
  std::vector<Order> orders_;

  // Only the thread uses these. A call that throws for want of memory leaves them so that it can be made again.
  std::vector<Order> carried_;    // orders that are being carried out
  std::size_t next_carried_ = 0;  // those before it have been
  // A peer stays where it is until UCX has closed its endpoint.
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<std::uint64_t, Peer*> routes_;
  struct Closing {
    std::unique_ptr<Peer> peer;
    void* request;
  };
  std::vector<Closing> closing_;
  std::size_t sending_ = 0;

  base::HelperThread thread_;  // last: it uses the others
};

}  // namespace wire
