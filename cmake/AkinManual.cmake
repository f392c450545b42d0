# Manual pages. akin.conf(5) and akin.sim(5) are written by the akin that was
# built, from its tables of keys, so that these and the pages cannot differ.
if(NOT TARGET akin)
  return()
endif()

set(conf_page ${PROJECT_BINARY_DIR}/akin.conf.5)
# The leak check of a sanitized build would find what libraries keep, and a log
# level that the caller has set is not for this run.
add_custom_command(OUTPUT ${conf_page}
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 AKIN_LOG=
    $<TARGET_FILE:akin> info --config=man > ${conf_page}
  DEPENDS akin
  VERBATIM
  COMMENT "Writing akin.conf.5")
set(sim_page ${PROJECT_BINARY_DIR}/akin.sim.5)
add_custom_command(OUTPUT ${sim_page}
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 AKIN_LOG=
    $<TARGET_FILE:akin> sim --keys=man > ${sim_page}
  DEPENDS akin
  VERBATIM
  COMMENT "Writing akin.sim.5")
add_custom_target(akin_manual ALL DEPENDS ${conf_page} ${sim_page})

install(FILES launch/man/akin.1 launch/man/akin-run.1 launch/man/akin-plan.1
  launch/man/akin-sim.1 launch/man/akin-report.1 launch/man/akin-trace.1
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${conf_page} ${sim_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
