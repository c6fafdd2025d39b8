// SPDX-License-Identifier: Apache-2.0
// Whether this is a build for a sanitizer or an emulator. Tests that take minutes there repeat less often; other builds
// have the full counts.
#pragma once

namespace test_support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// A build for another processor (preset arm64), run by qemu-user, which cannot start programs of the build tree and
/// does not support all system calls.
#if defined(GBA_TEST_EMULATED)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

}  // namespace test_support
