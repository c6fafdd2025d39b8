// SPDX-License-Identifier: Apache-2.0
// Barriers as the steps that each member takes, without times; model.hpp adds those.
#pragma once

#include <memory>
#include <vector>

namespace scale {

enum class Action {
  kSignal,  // store a word of each receiver, or one word that they all read
  kAwait,   // wait until one's own word has been stored
  kAdd,     // add to a counter; the member that makes it `expected` signals the receivers, itself included if it is one
  kRing     // ring the doorbell of the switch, which signals the receivers when `expected` have rung
};

/// How receivers on the sender's node are signalled. Over a network each gets a message.
enum class Lines {
  kOfEach,  // a store for each
  kOne,     // one store, which all of them spin on
  kRead     // one store, which each reads when it gets there
};

/// Receivers are `count` members: first, first + stride, ...; those after the sender are signalled first, the sender
/// itself is skipped. With stride 0 they are the members 1, 2, 4, ... above the sender, the most distant first.
struct Step {
  Action action = Action::kAwait;
  int word = 0;
  int first = 0;
  int stride = 1;
  int count = 1;
  int expected = 0;
  Lines lines = Lines::kOfEach;
};

/// One barrier of all members. Immutable.
class Algorithm {
 public:
  explicit Algorithm(int members) : members_(members) {}
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;
  virtual ~Algorithm() = default;

  [[nodiscard]] int members() const { return members_; }
  /// The number of steps that a member takes, and the number of its words.
  [[nodiscard]] virtual int length(int member) const = 0;
  [[nodiscard]] virtual int words(int member) const = 0;
  /// REQUIRES: 0 <= index < length(member).
  [[nodiscard]] virtual Step step(int member, int index) const = 0;

 private:
  int members_;
};

/// The barriers of libshmem, those through the switch, and Open MPI's.
enum class Method {
  kCentralCounter,
  kBasic,
  kDissemination,  // npu_v1 and dissemination
  kRadix,          // npu_v2
  kPull,           // npu_v3
  kRecursiveDoubling,
  kTournament,
  kNodeDissemination,  // hierarchical: a leader in each node, the leaders by dissemination
  kNodeRadix,          // the same, the leaders by npu_v2
  kGba,                // a leader in each node, with a port; the leaders of several switches by npu_v2
  kOpenMpi             // what coll/tuned of Open MPI 4.1 chooses by the number of members
};
const char* name_of(Method method);

struct Layout {
  int members = 2;
  int pes_per_node = 1;
  int ports_per_switch = 708;
  int radix = 8;  // of npu_v2: in a phase each member signals radix - 1 others
};

/// REQUIRES: layout.members >= 2.
std::unique_ptr<Algorithm> make_algorithm(Method method, const Layout& layout);

}  // namespace scale
