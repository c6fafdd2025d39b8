# -*- shell-script -*-
# SPDX-License-Identifier: Apache-2.0

# OMPI_CHECK_GBA(prefix, [action-if-found], [action-if-not-found])
# ----------------------------------------------------------------
# Whether there is libgba; sets prefix_{CPPFLAGS, LDFLAGS, LIBS}.
AC_DEFUN([OMPI_CHECK_GBA],[
    AC_ARG_WITH([gba],
                [AS_HELP_STRING([--with-gba(=DIR)],
                                [Build the components for the Global Barrier Accelerator, with libgba, optionally installed below DIR])])

    OPAL_VAR_SCOPE_PUSH([ompi_check_gba_happy ompi_check_gba_dir])
    ompi_check_gba_happy=no
    AS_IF([test "$with_gba" != "no"],
          [AS_IF([test -n "$with_gba" && test "$with_gba" != "yes"], [ompi_check_gba_dir=$with_gba], [ompi_check_gba_dir=])
           OPAL_CHECK_PACKAGE([$1], [gba/gba.h], [gba], [gba_open], [], [$ompi_check_gba_dir], [],
                              [ompi_check_gba_happy=yes], [ompi_check_gba_happy=no])
           AS_IF([test "$ompi_check_gba_happy" = "no" && test -n "$with_gba"],
                 [AC_MSG_ERROR([there is no libgba, which --with-gba asks for])])])

    AS_IF([test "$ompi_check_gba_happy" = "yes"], [$2], [$3])
    OPAL_VAR_SCOPE_POP
])dnl
