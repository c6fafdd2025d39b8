/* SPDX-License-Identifier: Apache-2.0 */
#include "gba_decide.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool gba_ompi_holds(const gba_ompi_offer_t* offer) {
  return offer->holder == offer->local_rank;
}

/* The holder of the node that is number `index`, modulo how many there are. */
static int holder_by_index(const gba_ompi_offer_t* offers, int members, int node, uint32_t index) {
  uint32_t count = 0;
  for (int member = 0; member < members; ++member) {
    count += gba_ompi_holds(&offers[member]) && offers[member].node == node;
  }
  if (count == 0) {
    return -1;
  }
  uint32_t left = index % count;
  int member = 0;
  for (;; ++member) {
    if (!gba_ompi_holds(&offers[member]) || offers[member].node != node) {
      continue;
    }
    if (left-- == 0) {
      return member;
    }
  }
}

int gba_ompi_holder_of(const gba_ompi_offer_t* offers, int members, int member) {
  const gba_ompi_offer_t* const sharer = &offers[member];
  if (sharer->holder == GBA_OMPI_ANY_HOLDER) {
    uint32_t before = 0;
    for (int other = 0; other < member; ++other) {
      before += offers[other].holder == GBA_OMPI_ANY_HOLDER && offers[other].node == sharer->node;
    }
    return holder_by_index(offers, members, sharer->node, before);
  }
  for (int other = 0; other < members; ++other) {
    const gba_ompi_offer_t* const offer = &offers[other];
    if (gba_ompi_holds(offer) && offer->node == sharer->node && offer->local_rank == sharer->holder) {
      return other;
    }
  }
  return -1;
}

uint32_t gba_ompi_holders(const gba_ompi_offer_t* offers, int members) {
  uint32_t count = 0;
  for (int member = 0; member < members; ++member) {
    count += gba_ompi_holds(&offers[member]);
  }
  return count;
}

uint32_t gba_ompi_locals(const gba_ompi_offer_t* offers, int members, int node) {
  uint32_t count = 0;
  for (int member = 0; member < members; ++member) {
    count += offers[member].node == node;
  }
  return count;
}

uint32_t gba_ompi_sharers(const gba_ompi_offer_t* offers, int members, int holder, uint32_t* places) {
  uint32_t count = 0;
  for (int member = 0; member < members; ++member) {
    if (member == holder || gba_ompi_holder_of(offers, members, member) != holder) {
      continue;
    }
    places[count++] = gba_ompi_locals(offers, member, offers[holder].node);
  }
  return count;
}

uint32_t gba_ompi_remote_leaders(const gba_ompi_offer_t* offers, int members, int self, uint32_t* leaders) {
  uint32_t count = 0;
  for (int member = 0; member < members; ++member) {
    if (offers[member].node == member && member != offers[self].node) {
      leaders[count++] = (uint32_t)member;
    }
  }
  return count;
}

gba_ompi_decision_t gba_ompi_decide(const gba_ompi_offer_t* offers, int members) {
  for (int member = 0; member < members; ++member) {
    if (offers[member].error != 0) {
      return (gba_ompi_decision_t){GBA_OMPI_NO_DEVICE, member, offers[member].error};
    }
  }
  for (int member = 0; member < members; ++member) {
    if (gba_ompi_holder_of(offers, members, member) >= 0) {
      continue;
    }
    if (offers[member].holder == GBA_OMPI_ANY_HOLDER) {
      return (gba_ompi_decision_t){GBA_OMPI_NO_DEVICE, member, -EBUSY};
    }
    return (gba_ompi_decision_t){GBA_OMPI_NO_HOLDER, member, 0};
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
      return "shares the port of a process that is not a member";
    case GBA_OMPI_NO_GROUP:
      return "got no group of the device";
    case GBA_OMPI_NOT_JOINED:
      return "could not join the group";
    case GBA_OMPI_NO_MESSAGE:
      return "could not exchange messages";
  }
  return "";
}

void gba_ompi_decision_text(const gba_ompi_decision_t* decision, char* text, size_t size) {
  if (decision->error == 0) {
    snprintf(text, size, "rank %d %s", decision->member, words_for(decision->reason));
  } else {
    snprintf(text, size, "rank %d %s (%s)", decision->member, words_for(decision->reason), strerror(-decision->error));
  }
}
