// SPDX-License-Identifier: Apache-2.0
// The parts of kv_pes, PEs of tests of kv_shuffle: `kv_pes PART ARGUMENT...`. Each returns the exit code.
#pragma once

namespace kv_bad_calls {
int run(int argc, char** argv);
}
namespace kv_calls {
int run(int argc, char** argv);
}
namespace kv_fork {
int run(int argc, char** argv);
}
namespace kv_killed {
int run(int argc, char** argv);
}
namespace kv_private {
int run(int argc, char** argv);
}
namespace kv_property {
int run(int argc, char** argv);
}
