// SPDX-License-Identifier: Apache-2.0
// The lines that the guest prints on its console and the host reads.
#pragma once

#include <array>

namespace vm {

/// "gba-vm: pass NAME" or "gba-vm: fail NAME: why", one line for each check.
inline constexpr const char* kPass = "gba-vm: pass ";
inline constexpr const char* kFail = "gba-vm: fail ";
/// "gba-vm: backend NAME": the backend by which libgba has opened the function.
inline constexpr const char* kBackend = "gba-vm: backend ";
/// "gba-vm: group NAME ID KEY": a group in which the host must be member 1, with rounds from 1.
inline constexpr const char* kGroup = "gba-vm: group ";
inline constexpr const char* kSharedGroup = "shared";
inline constexpr const char* kResetGroup = "reset";
/// Here the host is member 2.
inline constexpr const char* kThreeMembersGroup = "three-members";
inline constexpr const char* kUnplugGroup = "unplug";
/// The host must unplug the second function now.
inline constexpr const char* kUnplug = "gba-vm: unplug now";

/// The barriers of each group, whether the guest is its only member or shares it with the host.
inline constexpr unsigned kRounds = 100;

/// The checks of the guest, in its order.
inline constexpr std::array kChecks{
    // The function as the guest's kernel sees it, through sysfs.
    "pci_ids", "bar_sizes", "msix_capability", "registers",
    // Barriers with the BARs mapped through sysfs, DMA to a physical address.
    "bar_flag_barriers", "kick_wakes_the_device", "dma_barriers", "barriers_with_the_host",
    // The function bound to the kernel's VFIO, with DMA through the guest's IOMMU.
    "vfio_open", "vfio_regions", "vfio_bar_flag_barriers", "vfio_dma_barriers", "vfio_interrupt", "vfio_unmapped_flag",
    "vfio_bus_master", "vfio_large_mapping", "vfio_reset", "vfio_open_again",
    // libgba over VFIO, with a second function and a second process.
    "libgba_open", "libgba_nodes", "libgba_dma_barriers", "libgba_bar_barriers", "libgba_sleep", "libgba_timeout",
    "libgba_busy", "libgba_reopen", "libgba_three_members", "libgba_interrupts", "libgba_memory_limit",
    "libgba_unplug"};

}  // namespace vm
