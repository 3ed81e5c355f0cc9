# A relocatable tarball with the libraries it needs, all but glibc's, of which it needs 2.31: cmake -D BUILD=build/release
# -D TO=build/package -D VERSION=0.1.0 -P src/cmake/tarball.cmake. The same files give the same bytes.
cmake_minimum_required(VERSION 3.25)
cmake_host_system_information(RESULT machine QUERY OS_PLATFORM)
set(name "scalecalc-${VERSION}-linux-${machine}")
set(stage "${TO}/tarball")
file(REMOVE_RECURSE "${stage}")
execute_process(COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --strip --prefix "${stage}/${name}" OUTPUT_QUIET
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB library "${stage}/${name}/lib/*/libscalecalc.so.[0-9].*" "${stage}/${name}/lib/libscalecalc.so.[0-9].*")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${stage}/${name}/bin/scalecalc" LIBRARIES ${library}
     RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing CONFLICTING_DEPENDENCIES_PREFIX conflict
     PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)[.]so" "^libscalecalc")
if(missing)
  message(FATAL_ERROR "libraries were not found: ${missing}")
endif()
set(private "${stage}/${name}/lib/scalecalc")
file(MAKE_DIRECTORY "${private}")
foreach(file IN LISTS needed)
  get_filename_component(real "${file}" REALPATH)
  get_filename_component(as "${file}" NAME)
  file(COPY_FILE "${real}" "${private}/${as}")
endforeach()
file(COPY_FILE "${BUILD}/libscalecalc_older_glibc.so" "${private}/libscalecalc_older_glibc.so")
find_program(PATCHELF patchelf REQUIRED)
file(GLOB copied "${private}/*")
foreach(file IN LISTS copied)
  execute_process(COMMAND ${PATCHELF} --set-rpath "$ORIGIN" "${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
get_filename_component(beside "${library}" DIRECTORY)
foreach(file IN ITEMS "${stage}/${name}/bin/scalecalc" "${library}")
  get_filename_component(place "${file}" DIRECTORY)
  file(RELATIVE_PATH to_library "${place}" "${beside}")
  file(RELATIVE_PATH to_private "${place}" "${private}")
  execute_process(COMMAND ${PATCHELF} --set-rpath "$ORIGIN/${to_library}:$ORIGIN/${to_private}" "${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${PATCHELF} --add-needed libscalecalc_older_glibc.so "${library}" COMMAND_ERROR_IS_FATAL ANY)
# Where glibc had what is now in libc itself.
execute_process(COMMAND ${PATCHELF} --add-needed libpthread.so.0 --add-needed libdl.so.2 --add-needed libm.so.6
                        "${private}/libscalecalc_older_glibc.so" COMMAND_ERROR_IS_FATAL ANY)
find_program(PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
file(GLOB copied "${private}/*")
execute_process(COMMAND ${PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/older_glibc.py "${private}/libscalecalc_older_glibc.so"
                        "${stage}/${name}/bin/scalecalc" "${library}" ${copied} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND tar --sort=name --owner=0 --group=0 --numeric-owner "--mtime=@$ENV{SOURCE_DATE_EPOCH}" -C "${stage}"
                        -I "gzip -9n" -cf "${TO}/${name}.tar.gz" "${name}" COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "${TO}/${name}.tar.gz")
