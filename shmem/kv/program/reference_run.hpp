// SPDX-License-Identifier: Apache-2.0
// Ascend SHMEM's example itself, on its files.
#pragma once

#include "shmem/kv/program/replay.hpp"

namespace kv_program {

/// Collective: reads inputs and tables, shuffles, writes the outputs, and compares with the golden files if that is
/// asked for. Nothing moves before everything has been read and found right. How many blocks there are is put into
/// `options`.
Outcome run_import(Options& options, Agreement& agreement, Results& results);

/// Collective: writes inputs, tables and golden files as the example's golden.py does: five sequences of 0 to 1023
/// tokens on each PE, evened out in pairs. Its numbers are others.
Outcome run_generate(const Options& options, Agreement& agreement);

}  // namespace kv_program
