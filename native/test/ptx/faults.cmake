# That the interpreter finds faults: plants some in PTX, one at a time, and runs the checker.
#
#     cmake -DCHECK=check_ptx -DPTX=sm_90.ptx -P faults.cmake

file(READ ${PTX} original)

# In the line of the last of some texts, each found after the one before it.
function(plant name expected places pattern replacement)
  set(from 0)
  foreach(place ${places})
    string(SUBSTRING "${original}" ${from} -1 rest)
    string(FIND "${rest}" "${place}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${name}: no '${place}' in ${PTX}")
    endif()
    math(EXPR from "${from} + ${at}")
  endforeach()
  string(SUBSTRING "${original}" 0 ${from} before)
  string(SUBSTRING "${original}" ${from} -1 rest)
  string(FIND "${rest}" "\n" end)
  string(SUBSTRING "${rest}" 0 ${end} line)
  string(SUBSTRING "${rest}" ${end} -1 after)
  string(REGEX REPLACE "${pattern}" "${replacement}" changed "${line}")
  if(changed STREQUAL line)
    message(FATAL_ERROR "${name}: no ${pattern} in ${line}")
  endif()
  file(WRITE ${PTX}.planted "${before}${changed}${after}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PTX_FILE=${PTX}.planted PTX_STOP=1 ${CHECK} tiles
      OUTPUT_VARIABLE output RESULT_VARIABLE status)
  if(status EQUAL 0 OR NOT output MATCHES "${expected}")
    message(SEND_ERROR "${name}: not found (exit status ${status})\n${output}")
  else()
    message(STATUS "${name}: found: ${CMAKE_MATCH_0}")
  endif()
endfunction()

set(product "entry _ZN8kullback6kernelINS_7ProductILi4ELi4ELb0E")
plant("no barrier after a stage's wait" "(uninitialised shared memory|race: read after write)[^\n]*Product"
    "${product};wait_group;bar.sync" "bar.sync" "//")
plant("a group too many under way" "read of a copy under way[^\n]*Product" "${product};wait_group" "group ." "group 2")
plant("halves of a fragment swapped" "VIOLATION tiles of 128 x 128" "${product};mma.sync"
    "}, {(%[a-z0-9]+), (%[a-z0-9]+)" "}, {\\2, \\1")
plant("a list one entry on" "VIOLATION entry[^\n]* is nan" "${product};st.global.u16" "(%[a-z0-9]+)\\]" "\\1+2]")
plant("a store beyond the allocation" "write to no allocation[^\n]*Product" "${product};st.global.u16" "(%[a-z0-9]+)\\]" "\\1+1073741824]")
plant("a copy to an odd place" "misaligned[^\n]*Product" "${product};cp.async.cg" "\\[(%[a-z0-9]+)\\]" "[\\1+8]")
plant("a mask of half the lanes" "masks of lanes[^\n]*PrepareDiagonal"
    "entry _ZN8kullback6kernelINS_15PrepareDiagonal;shfl.sync" "[^ ]+;" "65535;")
