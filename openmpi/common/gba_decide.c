/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gba_setup.h"

int gba_ompi_holder_of(const gba_ompi_offer_t* offers, int members, int member) {
  const gba_ompi_offer_t* const sharer = &offers[member];
  for (int other = 0; other < members; ++other) {
    const gba_ompi_offer_t* const offer = &offers[other];
    const bool holds = offer->holder == offer->local_rank;
    if (holds && offer->node == sharer->node && offer->local_rank == sharer->holder) return other;
  }
  return -1;
}

gba_ompi_decision_t gba_ompi_decide(const gba_ompi_offer_t* offers, int members) {
  for (int member = 0; member < members; ++member) {
    if (offers[member].error != 0) {
      return (gba_ompi_decision_t){GBA_OMPI_NO_DEVICE, member, offers[member].error};
    }
  }
  for (int member = 0; member < members; ++member) {
    if (offers[member].node != offers[0].node) return (gba_ompi_decision_t){GBA_OMPI_NODES, member, 0};
    if (gba_ompi_holder_of(offers, members, member) < 0) return (gba_ompi_decision_t){GBA_OMPI_NO_HOLDER, member, 0};
  }
  return (gba_ompi_decision_t){GBA_OMPI_USED, -1, 0};
}

static const char* words_for(gba_ompi_reason_t reason) {
  switch (reason) {
    case GBA_OMPI_USED:
      return "uses the device";
    case GBA_OMPI_NO_DEVICE:
      return "cannot use a device";
    case GBA_OMPI_NO_HOLDER:
      return "shares the port of a process that takes no part";
    case GBA_OMPI_NODES:
      return "is on another node than the first";
    case GBA_OMPI_NO_GROUP:
      return "got no group of the device";
    case GBA_OMPI_NOT_JOINED:
      return "could not join the group";
    case GBA_OMPI_NO_MESSAGE:
      return "could not exchange messages";
  }
  return "";
}

void gba_ompi_setup_text(const gba_ompi_setup_t* setup, char* text, size_t size) {
  const gba_ompi_decision_t* const decision = &setup->decision;
  if (decision->reason == GBA_OMPI_USED) {
    snprintf(text, size, "the device does the barriers, as group %u of %d members", setup->handle.group,
             setup->party.members);
  } else {
    snprintf(text, size, "the previous module does the barriers: rank %d %s (%s)", decision->member,
             words_for(decision->reason), decision->error == 0 ? "by choice" : strerror(-decision->error));
  }
}
