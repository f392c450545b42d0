# The Debian package: `cpack` in the build folder makes it, as far as there is a
# dpkg-shlibdeps.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME akin)
set(CPACK_PACKAGE_VENDOR "The Akin developers")
set(AKIN_PACKAGE_MAINTAINER "The Akin developers <akin@localhost>" CACHE STRING
  "Who is asked about the Debian package: \"Name <address>\"")
set(CPACK_PACKAGE_CONTACT "${AKIN_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
  "MPI runtime that serves Mixture-of-Experts language models")
set(CPACK_PACKAGE_DESCRIPTION
  "The ranks of one MPI job are a router, prefill and decode workers, which may
be groups of expert-parallel ranks. The router gives each request to the decode
worker whose other requests use the same experts; key-value blocks go from
prefill to decode ranks over UCX. Answers do not depend on which worker served
a request, to the bit. The engine computes on CPU cores.
.
The package has the command, its library with the headers, a small model and
job files.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
# Debian's folders whatever the umask of whoever packs.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# mpirun is started, not linked.
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
# What programs that link the library are compiled with.
string(CONCAT CPACK_DEBIAN_PACKAGE_SUGGESTS
  "libopenmpi-dev, libucx-dev, libhwloc-dev, libconfig-dev, libjansson-dev, "
  "libpcre2-dev, libunistring-dev, libxxhash-dev, libck-dev, libsmartcols-dev, "
  "hwloc-nox | hwloc")

# Where Debian wants the licence and compressed pages.
set(CPACK_PRE_BUILD_SCRIPTS
  ${PROJECT_SOURCE_DIR}/cmake/AkinPackageTree.cmake)
set(CPACK_AKIN_DOCDIR ${CMAKE_INSTALL_DOCDIR})
set(CPACK_AKIN_MANDIR ${CMAKE_INSTALL_MANDIR})
set(CPACK_AKIN_STRIP ${CMAKE_STRIP})
include(CPack)
