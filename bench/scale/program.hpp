// SPDX-License-Identifier: Apache-2.0
// Barriers as steps that each member takes, without times: what the engines play.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace scale {

enum class Action {
  kTell,   // store a word of each receiver, or one that they look at
  kAwait,  // until one's own word has been stored
  kAdd,    // to a counter; who makes it `expected` tells the receivers, himself too if he is one
  kRing    // the switch's doorbell; the switch tells the receivers when `expected` have rung
};

/// How receivers on the teller's node are told. Over a network each gets a message.
enum class Lines {
  kOfEach,  // a store for each
  kOne,     // one store, which all of them spin on
  kRead     // one store, which each reads when it gets there
};

/// Receivers are first, first + stride, ...: who comes after the teller is told first, he himself is left out. With
/// stride 0 they are those 1, 2, 4, ... above the teller, the furthest first.
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
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  [[nodiscard]] virtual int members() const = 0;
  /// How many steps a member takes, and how many words it has.
  [[nodiscard]] virtual int length(int member) const = 0;
  [[nodiscard]] virtual int words(int member) const = 0;
  /// REQUIRES: 0 <= index < length(member).
  [[nodiscard]] virtual Step step(int member, int index) const = 0;
};

/// Every barrier of libshmem, those through the switch, and Open MPI's.
enum class Method {
  kCentralCounter,
  kBasic,
  kDissemination,  // npu_v1 and dissemination
  kRadix,          // npu_v2
  kPull,           // npu_v3
  kRecursiveDoubling,
  kTournament,
  kNodeDissemination,  // hierarchical: in each node a leader, the leaders by dissemination
  kNodeRadix,          // the same, by npu_v2
  kGba,                // in each node a leader, who has a port; more than one switch: their leaders by npu_v2
  kOpenMpi             // what coll/tuned of Open MPI 4.1 chooses by the number of members
};
const char* name_of(Method method);

struct Layout {
  int members = 2;
  int pes_per_node = 1;
  int ports_per_switch = 708;
  int radix = 8;
};

/// REQUIRES: members >= 2.
std::unique_ptr<Program> make_program(Method method, const Layout& layout);

/// ceil(log_base(n)): how many times `base` must be multiplied to reach n.
int rounds(int n, int base = 2);

}  // namespace scale
