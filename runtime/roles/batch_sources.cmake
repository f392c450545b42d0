# The batch front: included by CMakeLists.txt of this folder.
set(AKIN_BATCH_SOURCES)
set(AKIN_BATCH_LINK PkgConfig::JANSSON PkgConfig::XXHASH PkgConfig::CK
  PkgConfig::SMARTCOLS)
