// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// The part "many" of driver_member; returns its exit code.
int run_many_members(std::span<char*> words);
