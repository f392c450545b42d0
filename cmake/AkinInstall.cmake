# libakin, the installed headers, the CMake package and the pkg-config file.
set(AKIN_LICENSE "BSD-3-Clause")

# The layers become one static archive, so that a program links one library.
get_property(modules GLOBAL PROPERTY AKIN_MODULES)
list(REMOVE_ITEM modules akin_launch)
set(objects "")
foreach(module ${modules})
  list(APPEND objects $<TARGET_OBJECTS:${module}>)
endforeach()
add_library(akin_lib STATIC ${objects})
set_target_properties(akin_lib PROPERTIES
  OUTPUT_NAME akin EXPORT_NAME akin LINKER_LANGUAGE C)
add_library(akin::akin ALIAS akin_lib)

# What an archive cannot carry: the libraries that it is linked with. The same
# list stands in akinConfig.cmake.in and akin.pc.in.
target_link_libraries(akin_lib INTERFACE
  Threads::Threads OpenMP::OpenMP_C MPI::MPI_C
  PkgConfig::LIBCONFIG PkgConfig::JANSSON PkgConfig::PCRE2 PkgConfig::XXHASH
  PkgConfig::HWLOC PkgConfig::UCX PkgConfig::CK PkgConfig::SMARTCOLS
  unistring m)
# Headers name each other from their root ("kv/block.h"), programs may name
# them <akin/kv/block.h>.
target_include_directories(akin_lib INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/akin>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)

install(TARGETS akin_lib EXPORT akinTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET akin)
  install(TARGETS akin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# A header is public if it declares a name of the akin_ API; the others, with
# akini_ names or statics, stay inside.
set(akin_public "^} akin_|^typedef .*[ *]akin_[a-z0-9_]+;")
string(APPEND akin_public "|^([a-z].*[ *])?akin_[a-z0-9_]+\\(")
foreach(root runtime .)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS
    RELATIVE ${PROJECT_SOURCE_DIR}/${root} runtime/*.h ep/*.h routing/*.h)
  foreach(header ${headers})
    if(header MATCHES "^(\\.\\./|runtime/)")
      continue()
    endif()
    file(STRINGS ${root}/${header} declared REGEX "${akin_public}"
      LIMIT_COUNT 1)
    if(declared)
      get_filename_component(folder ${header} DIRECTORY)
      install(FILES ${root}/${header}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/akin/${folder})
    endif()
  endforeach()
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/base/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/akin/base)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Job files name the model as examples/tiny-moe, from where examples/ lies.
install(DIRECTORY examples/jobs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/akin/examples)
install(DIRECTORY examples/tiny-moe
  DESTINATION ${CMAKE_INSTALL_DATADIR}/akin/examples
  PATTERN train EXCLUDE)
install(DIRECTORY examples/paper
  DESTINATION ${CMAKE_INSTALL_DATADIR}/akin/examples
  FILES_MATCHING PATTERN "*.sim")
install(FILES examples/prompts.jsonl
  DESTINATION ${CMAKE_INSTALL_DATADIR}/akin/examples)

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/akin)
install(EXPORT akinTargets NAMESPACE akin:: DESTINATION ${package_dir})
configure_package_config_file(cmake/akinConfig.cmake.in akinConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(akinConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/akinConfig.cmake
  ${PROJECT_BINARY_DIR}/akinConfigVersion.cmake
  DESTINATION ${package_dir})

# The prefix of akin.pc follows the file, so that the tree can be moved.
file(RELATIVE_PATH AKIN_PC_PREFIX
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" AKIN_PC_PREFIX "${AKIN_PC_PREFIX}")
string(REPLACE ";" " " AKIN_PC_MPI_LIBS "${MPI_C_LIBRARIES}")
set(AKIN_PC_MPI_CFLAGS "")
foreach(dir ${MPI_C_INCLUDE_DIRS})
  string(APPEND AKIN_PC_MPI_CFLAGS " -I${dir}")
endforeach()
configure_file(cmake/akin.pc.in akin.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/akin.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
