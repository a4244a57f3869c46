# Runs a program under gdb with the pretty-printers and compares what they show.
execute_process(COMMAND ${gdb} -nx -batch -ex "source ${printers}" -ex "break stop_here" -ex run -ex "print x" -ex "print shape"
                        -ex "print weight" -ex "print nothing" ${program}
                OUTPUT_VARIABLE text ERROR_VARIABLE errors)
if(errors MATCHES "ptrace: Operation not permitted" AND NOT text MATCHES "Breakpoint 1, ")
  message("gdb may not run programs here: ${errors}")
  return()
endif()
foreach(expected "Tensor [[1, 2]" "i64 [2, 2]" "= [2, 2]" "Parameter [[" "f32 [2, 3] requires_grad" "Tensor undefined")
  string(FIND "${text}" "${expected}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "gdb does not show '${expected}':\n${text}\n${errors}")
  endif()
endforeach()
