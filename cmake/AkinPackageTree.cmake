# Run by cpack on the tree that it packs: what Debian wants otherwise than a
# plain installation has it.
set(root ${CPACK_TEMPORARY_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})

# run(<command> [<arg>...]) or the package is not made.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${code}")
  endif()
endfunction()

file(GLOB pages ${root}/${CPACK_AKIN_MANDIR}/man[0-9]/*.[0-9])
if(NOT pages)
  message(FATAL_ERROR "no manual pages in ${root}/${CPACK_AKIN_MANDIR}")
endif()
# Without names and times the same pages always give the same bytes.
run(gzip -9n ${pages})

file(RENAME ${root}/${CPACK_AKIN_DOCDIR}/LICENSE
  ${root}/${CPACK_AKIN_DOCDIR}/copyright)

# cpack itself strips programs only.
file(GLOB_RECURSE archives ${root}/*.a)
foreach(archive ${archives})
  run(${CPACK_AKIN_STRIP} --strip-debug ${archive})
endforeach()
