# After a test program was linked: one test of ctest for each of its suites, all in one process. A process for each single
# test, as gtest_discover_tests() makes them, costs more than most tests do.
#   cmake -DPROGRAM=… -DPREFIX=… -DLEFT_OUT=… -DTIMEOUT=… -DFILE=… -P suites.cmake
# LEFT_OUT: a filter of tests that somebody else runs; empty: none.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests "--gtest_filter=-${LEFT_OUT}"
  OUTPUT_VARIABLE listed RESULT_VARIABLE failed TIMEOUT 60)
if(failed)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${failed}")
endif()
string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\." suites "${listed}")
set(tests)
foreach(suite ${suites})
  string(STRIP "${suite}" suite)
  set(filter "${suite}*")
  if(LEFT_OUT)
    string(APPEND filter "-${LEFT_OUT}")
  endif()
  string(REGEX REPLACE "\\.$" "" name "${PREFIX}${suite}")
  string(APPEND tests "add_test([=[${name}]=] \"${PROGRAM}\" \"--gtest_filter=${filter}\" --gtest_brief=1)\n")
  string(APPEND tests "set_tests_properties([=[${name}]=] PROPERTIES TIMEOUT ${TIMEOUT})\n")
endforeach()
file(WRITE ${FILE} "${tests}")
