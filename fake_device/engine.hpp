// SPDX-License-Identifier: Apache-2.0
// Carries doorbell words from shared memory into the model, and its releases back out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "fake_device/faults.hpp"
#include "fake_device/model.hpp"
#include "fake_device/profile.hpp"
#include "fake_device/shared_memory.hpp"

namespace fake_device {

/// One client, seen from the engine. The calls come from within Engine's calls and must not call back into it.
class PortLink {
 public:
  PortLink() = default;
  PortLink(const PortLink&) = delete;
  PortLink& operator=(const PortLink&) = delete;

  [[nodiscard]] virtual const SharedPages& doorbells() const = 0;
  [[nodiscard]] virtual const SharedPages& flags() const = 0;
  /// The 8 bytes at `iova` in the client's memory, mapped here; nothing if there is no such mapping, or the device may
  /// not write there. Valid until the link says otherwise through Engine::forget_memory.
  virtual std::optional<GuardedWord> resolve(std::uint64_t iova) = 0;
  /// Sends the word to client memory that has no file behind it. False: `iova` is not such memory.
  virtual bool send_store(unsigned group, std::uint64_t iova, std::uint64_t word) = 0;
  /// Raises a vector after the stores sent before.
  virtual void raise(unsigned vector) = 0;
  /// The function is pulled out: uapi rule 36.
  virtual void removed() = 0;
  /// The client took memory away that it had given: drop it, later.
  virtual void memory_lost() = 0;

 protected:
  ~PortLink() = default;
};

/// Whether faults may be injected, and by whom.
enum class FaultInjection {
  kNone,
  kByOperator,  // inject()
  kByClients,   // the debug region too
};

/// Used by one thread, for scan() and register accesses alike, so the model needs no lock.
class Engine final : public Effects {
 public:
  Engine(const Profile& profile, unsigned ports, FaultInjection injection = FaultInjection::kNone);

  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] const Dimensions& dimensions() const { return model_.dimensions(); }
  [[nodiscard]] unsigned privileged_port() const { return model_.privileged_port(); }

  // ---- Connections
  /// `link` must live until detach().
  void attach(unsigned port, PortLink& link);
  void detach(unsigned port, Time now);
  void reset(unsigned port, Time now);
  /// Doorbells count only while the port's COMMAND.MEM is set: uapi rule 2.
  void set_decoding(unsigned port, bool decoding);
  /// What link.resolve() said of this port holds no longer.
  void forget_memory(unsigned port);
  void flag_store_failed(unsigned port, unsigned group, std::uint64_t iova);

  // ---- BAR0, and BAR2 by message. Doorbells that the port rang before take effect first, as posted writes do.
  std::uint64_t read(unsigned port, std::uint64_t offset, std::uint64_t size, Time now);
  void write(unsigned port, std::uint64_t offset, std::uint64_t size, std::uint64_t value, Time now);
  /// An 8-byte write to the port's slot of group `slot`.
  void ring(unsigned port, unsigned slot, std::uint64_t word, Time now);
  void bad_doorbell(unsigned port, std::uint64_t offset, std::uint64_t value) {
    model_.bad_doorbell(port, offset, value);
  }
  /// Looks at every slot of one port, joined or not: what is found there without a membership is a fault.
  void sweep(unsigned port, Time now);

  // ---- The loop
  /// Looks once at the slot of every membership of a group that has been enabled. True if there was an arrival.
  bool scan(Time now);
  /// Uapi rule 14: tells the clients that the device sleeps and scans once more. False: there was an arrival; do not
  /// sleep, call awake().
  bool fall_asleep(Time now);
  void awake();
  void count_wakeup() { model_.count_wakeup(); }
  [[nodiscard]] Time next_deadline() const { return std::min(model_.next_deadline(), next_fault()); }
  void expire(Time now);
  void shut_down() { model_.shut_down(); }
  /// Ports that are a member of something enabled.
  [[nodiscard]] std::size_t joined_ports() const { return joined_ports_; }

  // ---- Faults on request
  [[nodiscard]] FaultInjection injection() const { return injection_; }
  /// Fails with what is wrong with it.
  Result<void> inject(const Injection& injection, Time now);
  /// Later, at `due`. REQUIRES: inject() would not refuse it.
  void schedule(const Injection& injection, Time due) { scheduled_.emplace(due, injection); }
  [[nodiscard]] Faults& faults() { return faults_; }

  // ---- State
  [[nodiscard]] const Model& model() const { return model_; }

  // ---- Effects
  bool store_flag(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) override;
  void raise(unsigned port, unsigned vector) override;
  void joined(unsigned port, unsigned group) override;
  void opened(unsigned group, bool open) override;
  void left(unsigned port, unsigned group) override;
  std::uint32_t random_key() override;

 private:
  struct Slot {
    std::atomic<std::uint64_t>* word;
    std::uint16_t port;
    std::uint16_t group;
  };
  struct Attachment {
    PortLink* link = nullptr;
    bool decoding = true;
    bool removed = false;  // uapi rule 36
  };
  /// The flag of one membership, resolved.
  struct Flag {
    std::uint64_t address = 0;
    GuardedWord target;
  };

  bool take(const Slot& slot, Time now);
  void deliver(unsigned port, unsigned group, std::uint64_t word, Time now);
  [[nodiscard]] Time next_fault() const;
  void happen(const Injection& injection, Time now);
  void forge_arrival(const Injection& injection, Time now);
  void remove_port(unsigned port, Time now);
  bool store_slowly(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word);
  static std::optional<GuardedWord> bar_flag(const PortLink& link, unsigned group);
  bool take_all(const std::vector<Slot>& slots, Time now);
  void add_slot(unsigned port, unsigned group);
  template <typename Condition>
  void remove_slots(Condition condition);
  void count_joined_ports();
  void clear_slots(unsigned port);
  void set_wakeup(std::uint32_t value);
  Flag& flag(unsigned port, unsigned group) { return flags_[std::size_t{port} * groups_ + group]; }

  const Profile& profile_;
  const unsigned groups_;
  std::vector<Attachment> attachments_;
  std::vector<Flag> flags_;
  std::vector<bool> open_;  // groups that have been enabled
  // Both have room for all memberships: to join, leave and open needs no memory.
  std::vector<Slot> slots_;   // of their members, all of them looked at all the time
  std::vector<Slot> closed_;  // of other members: what is found there is a fault
  std::vector<bool> joined_;  // ports in slots_
  std::size_t joined_ports_ = 0;
  const FaultInjection injection_;
  Faults faults_;
  std::multimap<Time, Injection> scheduled_;
  Model model_;
};

}  // namespace fake_device
