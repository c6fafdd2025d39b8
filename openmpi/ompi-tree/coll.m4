# -*- shell-script -*-
# SPDX-License-Identifier: Apache-2.0

# MCA_ompi_coll_gba_CONFIG([action-if-can-compile], [action-if-cant-compile])
# ---------------------------------------------------------------------------
AC_DEFUN([MCA_ompi_coll_gba_CONFIG],[
    AC_CONFIG_FILES([ompi/mca/coll/gba/Makefile])
    OMPI_CHECK_GBA([coll_gba], [$1], [$2])
    AC_SUBST([coll_gba_CPPFLAGS])
    AC_SUBST([coll_gba_LDFLAGS])
    AC_SUBST([coll_gba_LIBS])
])dnl
