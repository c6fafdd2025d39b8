# SPDX-License-Identifier: Apache-2.0
"""libshmem as a binding by ctypes sees it: teams are pointers, and SHMEM_TEAM_INVALID is None."""

import ctypes
import os
import unittest

Team = ctypes.c_void_p
INVALID, WORLD, SHARED = Team(None), Team(1), Team(2)

shmem = ctypes.CDLL(os.path.join(os.environ["GBA_BIN"], "..", "lib", "libshmem.so.1"))
for name, result, arguments in (
    ("shmem_team_my_pe", ctypes.c_int, (Team,)),
    ("shmem_team_n_pes", ctypes.c_int, (Team,)),
    ("shmem_team_sync", ctypes.c_int, (Team,)),
    ("shmem_team_destroy", None, (Team,)),
    ("shmem_team_translate_pe", ctypes.c_int, (Team, ctypes.c_int, Team)),
    (
        "shmem_team_split_strided",
        ctypes.c_int,
        (Team, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_long, ctypes.POINTER(Team)),
    ),
):
    getattr(shmem, name).restype, getattr(shmem, name).argtypes = result, arguments


class Teams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shmem.shmem_init()

    @classmethod
    def tearDownClass(cls):
        shmem.shmem_finalize()

    def test_predefined_teams(self):
        for team in (WORLD, SHARED):
            self.assertEqual(shmem.shmem_team_my_pe(team), shmem.shmem_my_pe())
            self.assertEqual(shmem.shmem_team_n_pes(team), shmem.shmem_n_pes())
            self.assertEqual(shmem.shmem_team_sync(team), 0)

    def test_a_pe_outside_of_a_new_team_gets_none(self):
        team = Team(17)
        self.assertEqual(shmem.shmem_team_split_strided(WORLD, 1, 1, 1, None, 0, ctypes.byref(team)), 0)
        self.assertEqual(team.value is not None, shmem.shmem_my_pe() == 1)
        self.assertEqual(shmem.shmem_team_my_pe(team), 0 if team else -1)
        if team:
            self.assertEqual(shmem.shmem_team_translate_pe(team, 0, WORLD), 1)
            self.assertEqual(shmem.shmem_team_sync(team), 0)
        shmem.shmem_team_destroy(team)
        self.assertEqual(shmem.shmem_team_my_pe(team), -1)
        shmem.shmem_team_sync(WORLD)

    def test_what_is_no_team_has_no_pes(self):
        text = ctypes.create_string_buffer(64)
        for handle in (INVALID, None, Team(4097), Team((1 << 32) + 1), Team(-1), ctypes.addressof(text)):
            self.assertEqual(shmem.shmem_team_my_pe(handle), -1)
            self.assertEqual(shmem.shmem_team_n_pes(handle), -1)


if __name__ == "__main__":
    # A PE that fails a test stops at once: the launcher then ends the others, which may wait for it.
    unittest.main(failfast=True, verbosity=0)
