# Compiles SOURCE for one architecture and prints each kernel's registers; fails if one spills or uses a stack.
execute_process(
    COMMAND ${NVCC} -ccbin ${HOST} -std=c++17 -O3 --fmad=false -arch=sm_${ARCHITECTURE} -Xptxas -v -cubin -o /dev/null ${SOURCE}
    ERROR_VARIABLE log OUTPUT_VARIABLE log COMMAND_ERROR_IS_FATAL ANY)

string(CONCAT pattern
    "Compiling entry function '[^']+'"
    "|[0-9]+ bytes stack frame, [0-9]+ bytes spill stores, [0-9]+ bytes spill loads"
    "|Used [0-9]+ registers")
string(REGEX MATCHALL "${pattern}" facts "${log}")
set(failed "")
set(kernels 0)
foreach(fact ${facts})
  if(fact MATCHES "'([^']+)'")
    string(REGEX REPLACE "^_ZN8kullback6kernelI|EEvT_l$" "" kernel ${CMAKE_MATCH_1})
  elseif(fact MATCHES "stack frame")
    set(stack "${fact}")
    if(NOT fact STREQUAL "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")
      list(APPEND failed ${kernel})
    endif()
  elseif(fact MATCHES "Used ([0-9]+) registers")
    set(registers ${CMAKE_MATCH_1})
    message(STATUS "${registers} registers, ${stack}: ${kernel}")
    math(EXPR kernels "${kernels} + 1")
    if(registers GREATER 255)
      list(APPEND failed ${kernel})
    endif()
  endif()
endforeach()
if(kernels EQUAL 0)
  message(FATAL_ERROR "no kernel found in the compiler's output:\n${log}")
endif()
if(failed)
  message(FATAL_ERROR "spills: ${failed}")
endif()
