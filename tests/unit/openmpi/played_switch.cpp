// SPDX-License-Identifier: Apache-2.0
// The simulated switch of all unit tests, compiled for this program.
#include "tests/unit/shmem/fake_gba.cpp"
