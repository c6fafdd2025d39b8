// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_peers.hpp"

#include "shmem/cores/wait.hpp"

namespace shmem {

namespace {

/// How long a PE that goes waits for its endpoints to close: the others may be gone, or not look.
constexpr std::chrono::milliseconds kCloseLimit{500};

void on_failure(void* argument, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  UcxPeer& peer = *static_cast<UcxPeer*>(argument);
  peer.all->note_failure(peer, status);
}

}  // namespace

UcxPeers::UcxPeers(UcxWorker& worker, std::vector<Greeting> greetings, const NetworkSettings& settings, int me)
    : worker_(worker),
      greetings_(std::move(greetings)),
      is_far_(settings.is_far),
      names_(settings.names),
      me_(me),
      threads_(settings.threads),
      peers_(greetings_.size()) {
  for (std::size_t pe = 0; pe < peers_.size(); ++pe) {
    peers_[pe].pe = static_cast<int>(pe);
    peers_[pe].all = this;
  }
}

std::unique_lock<std::mutex> UcxPeers::lock() {
  return threads_ ? std::unique_lock(mutex_) : std::unique_lock(mutex_, std::defer_lock);
}

Result<UcxPeer*> UcxPeers::reach(int pe, const Doing& doing) {
  if (pe < 0 || static_cast<std::size_t>(pe) >= peers_.size() || !is_far_[static_cast<std::size_t>(pe)]) {
    return fail(std::errc::invalid_argument,
                "shmem: " + my_name() + " does not reach PE " + std::to_string(pe) + " by the network");
  }
  UcxPeer& peer = peers_[static_cast<std::size_t>(pe)];
  if (peer.lost.load(std::memory_order_acquire) == nullptr && peer.endpoint == nullptr) {
    if (const auto status = connect(peer); status != UCS_OK) note_failure(peer, status);
  }
  if (peer.lost.load(std::memory_order_acquire) != nullptr) return lost_error(peer, doing);
  return &peer;
}

ucs_status_t UcxPeers::connect(UcxPeer& peer) {
  const Greeting& greeting = greetings_[static_cast<std::size_t>(peer.pe)];
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(greeting.address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = on_failure;
  parameters.err_handler.arg = &peer;
  ucp_ep_h endpoint = nullptr;
  if (const auto made = worker_.calls().ep_create(worker_.worker(), &parameters, &endpoint); made != UCS_OK)
    return made;
  peer.endpoint = endpoint;
  connected_.push_back(&peer);
  for (std::size_t segment = 0; segment < kSegments; ++segment) {
    const auto& key = greeting.segments[segment].key;
    if (key.empty()) continue;
    if (const auto done = worker_.calls().ep_rkey_unpack(endpoint, key.data(), &peer.keys[segment]); done != UCS_OK) {
      peer.keys[segment] = nullptr;
      return done;
    }
  }
  return UCS_OK;
}

Result<void> UcxPeers::check(const FarPlace& place, std::size_t bytes) const {
  const auto pe = static_cast<std::size_t>(place.pe);
  const auto segment = static_cast<std::size_t>(place.segment);
  const std::uint64_t size = pe < greetings_.size() && segment < kSegments ? greetings_[pe].segments[segment].bytes : 0;
  if (bytes <= size && place.offset <= size - bytes) return {};
  return fail(std::errc::invalid_argument, "shmem: " + std::to_string(bytes) + " bytes from byte " +
                                               std::to_string(place.offset) + " are not all in the " +
                                               std::to_string(size) + " bytes of segment " + std::to_string(segment) +
                                               " of PE " + std::to_string(place.pe));
}

void UcxPeers::note_failure(UcxPeer& peer, ucs_status_t status) {
  note_lost(peer, worker_.calls().status_string(status));
}

void UcxPeers::note_lost(UcxPeer& peer, const char* why) {
  const char* before = nullptr;
  // Release: the text is read by who sees it. The first reason stays.
  if (!peer.lost.compare_exchange_strong(before, why, std::memory_order_acq_rel)) return;
  const UcxPeer* nobody = nullptr;
  first_lost_.compare_exchange_strong(nobody, &peer, std::memory_order_acq_rel);
}

void UcxPeers::give_up(UcxPeer& peer) {
  note_lost(peer, "it did not answer in time");
  const auto held = lock();
  if (peer.closed || peer.endpoint == nullptr) return;
  void* request = close(peer, true);
  if (UCS_PTR_IS_PTR(request)) worker_.calls().request_free(request);  // goes on without us
}

std::string UcxPeers::text_of(const UcxPeer& peer, const Doing& doing) const {
  std::string text = std::string(doing.verb) + " ";
  if (doing.bytes > 0) text += std::to_string(doing.bytes) + " bytes ";
  if (*doing.preposition != '\0') text += std::string(doing.preposition) + " ";
  return text + name(peer.pe);
}

std::string UcxPeers::attempt(const UcxPeer& peer, const Doing& doing) const {
  return "shmem: " + my_name() + " cannot " + text_of(peer, doing);
}

tl::unexpected<Error> UcxPeers::lost_error(const UcxPeer& peer, const Doing& doing) const {
  const char* why = peer.lost.load(std::memory_order_acquire);
  return fail(std::errc::connection_reset,
              attempt(peer, doing) + ", which is lost: " + (why == nullptr ? "no reason given" : why) + " (UCX over " +
                  worker_.transports() + "); is its process alive, its node reachable, and no firewall between?");
}

tl::unexpected<Error> UcxPeers::error(const UcxPeer& peer, ucs_status_t status, const Doing& doing) const {
  if (peer.lost.load(std::memory_order_acquire) != nullptr) return lost_error(peer, doing);
  return ucx_failure(worker_.calls(), status, attempt(peer, doing));
}

std::optional<Error> UcxPeers::first_lost() const {
  const UcxPeer* peer = first_lost_.load(std::memory_order_acquire);
  if (peer == nullptr) return std::nullopt;
  return lost_error(*peer, {"reach", 0, ""}).value();
}

void* UcxPeers::close(UcxPeer& peer, bool force) {
  peer.closed = true;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  return worker_.calls().ep_close_nbx(peer.endpoint, &parameters);
}

UcxPeers::~UcxPeers() {
  const UcxCalls& calls = worker_.calls();
  std::vector<void*> closing;
  for (UcxPeer* peer : connected_) {
    for (ucp_rkey_h key : peer->keys) {
      if (key != nullptr) calls.rkey_destroy(key);
    }
    if (peer->closed) continue;
    void* request = close(*peer, peer->lost.load(std::memory_order_acquire) != nullptr);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  const auto deadline = Clock::now() + kCloseLimit;
  for (void* request : closing) {
    while (calls.request_check_status(request) == UCS_INPROGRESS && Clock::now() < deadline) {
      if (!worker_.progress()) worker_.nap(std::chrono::milliseconds{1});
    }
    calls.request_free(request);
  }
}

}  // namespace shmem
