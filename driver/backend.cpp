// SPDX-License-Identifier: Apache-2.0
#include "driver/backend.hpp"

#include <cerrno>

#include "driver/dma_memory.hpp"

namespace gba {

namespace {

struct Facts {
  std::errc code;
  const char* text;
};

Facts facts_of(Loss loss) {
  switch (loss) {
    case Loss::kNone:
      break;
    case Loss::kRemoved:
      return {std::errc::no_such_device,
              "it reads all ones: it was pulled out or powered off, or its memory decoding was switched off"};
    case Loss::kUnmapped:
      return {
          std::errc::no_such_device_or_address,
          "its memory does not answer any more (SIGBUS): it was unplugged, or its memory decoding was switched off"};
    case Loss::kPciError:
      return {std::errc{EREMOTEIO}, "a PCI error that cannot be corrected: see the kernel's log"};
    case Loss::kWanted:
      return {std::errc{ESHUTDOWN}, "the kernel wants it back: it is being unplugged or taken from vfio-pci"};
    case Loss::kClosed:
      return {std::errc::connection_aborted, "its process has ended or was killed, or closed the connection"};
    case Loss::kSilent:
      return {std::errc{EHOSTDOWN}, "it does not answer (is its process stopped?)"};
    case Loss::kGarbled:
      return {std::errc::bad_message, "it breaks the protocol"};
    case Loss::kForked:
      return {std::errc::no_child_process, "it belongs to the process that this one was forked from; open it again"};
  }
  return {std::errc::no_such_device, "for an unknown reason"};
}

}  // namespace

std::errc code_of(Loss loss) {
  return facts_of(loss).code;
}

const char* text_of(Loss loss) {
  return facts_of(loss).text;
}

Result<std::shared_ptr<IovaSpace>> Backend::iova_space(const DmaLimits& limits) {
  return make_iova_space(limits);
}

Error loss_error(Loss loss, const std::string& path) {
  return fail(code_of(loss), fmt::format("gba: the device {} is lost: {}", path, text_of(loss)));
}

}  // namespace gba
