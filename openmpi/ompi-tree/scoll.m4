# -*- shell-script -*-
# SPDX-License-Identifier: Apache-2.0

# MCA_oshmem_scoll_gba_CONFIG([action-if-can-compile], [action-if-cant-compile])
# ------------------------------------------------------------------------------
AC_DEFUN([MCA_oshmem_scoll_gba_CONFIG],[
    AC_CONFIG_FILES([oshmem/mca/scoll/gba/Makefile])

    AC_ARG_ENABLE([scoll-gba],
                  [AS_HELP_STRING([--enable-scoll-gba],
                                  [Build scoll/gba, OpenSHMEM's barriers by the Global Barrier Accelerator (default: where there is libgba)])])

    AS_IF([test "$enable_scoll_gba" = "no"],
          [$2],
          [OMPI_CHECK_GBA([scoll_gba],
                          [$1],
                          [AS_IF([test "$enable_scoll_gba" = "yes"],
                                 [AC_MSG_ERROR([there is no libgba, which --enable-scoll-gba asks for])])
                           $2])])

    AC_SUBST([scoll_gba_CPPFLAGS])
    AC_SUBST([scoll_gba_LDFLAGS])
    AC_SUBST([scoll_gba_LIBS])
])dnl
