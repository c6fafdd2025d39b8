# -*- shell-script -*-
# SPDX-License-Identifier: Apache-2.0

# MCA_coll_gba_CONFIG([action-if-can-compile], [action-if-cant-compile])
# ----------------------------------------------------------------------
AC_DEFUN([MCA_ompi_coll_gba_CONFIG],[
    AC_CONFIG_FILES([ompi/mca/coll/gba/Makefile])

    AC_ARG_WITH([gba],
                [AS_HELP_STRING([--with-gba(=DIR)],
                                [Build the component for the Global Barrier Accelerator, with libgba, optionally installed below DIR])])

    coll_gba_happy=no
    AS_IF([test "$with_gba" != "no"],
          [AS_IF([test -n "$with_gba" && test "$with_gba" != "yes"], [coll_gba_dir=$with_gba], [coll_gba_dir=])
           OPAL_CHECK_PACKAGE([coll_gba], [gba/gba.h], [gba], [gba_open], [], [$coll_gba_dir], [],
                              [coll_gba_happy=yes], [coll_gba_happy=no])
           AS_IF([test "$coll_gba_happy" = "no" && test -n "$with_gba"],
                 [AC_MSG_ERROR([there is no libgba, which --with-gba asks for])])])

    AS_IF([test "$coll_gba_happy" = "yes"], [$1], [$2])

    AC_SUBST([coll_gba_CPPFLAGS])
    AC_SUBST([coll_gba_LDFLAGS])
    AC_SUBST([coll_gba_LIBS])
])dnl
