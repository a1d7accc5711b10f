# meshcoll_compile_options(<target>): the warnings, the sanitizer and the feature macro that every
# C file of the project is compiled with.

if(NOT MESHCOLL_SANITIZE MATCHES "^(|address,undefined|thread)$")
    message(FATAL_ERROR "MESHCOLL_SANITIZE is \"${MESHCOLL_SANITIZE}\": "
            "expected nothing, address,undefined or thread")
endif()

# A compiler newer than those of CI warns of what nobody has seen, which ends no build.
set(werror ${MESHCOLL_WERROR})
if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 14) OR
   (CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 19))
    set(werror OFF)
endif()

function(meshcoll_compile_options target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
        -Wpointer-arith -Wvla -Wwrite-strings -Wundef -Wimplicit-fallthrough
        -Wformat=2 -Wno-format-nonliteral -Werror=implicit-function-declaration
        $<$<BOOL:${werror}>:-Werror>)
    # Empty, so that a file which says "#define _GNU_SOURCE" itself is no redefinition.
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
endfunction()

# meshcoll_stack_options(<target>): a call takes 32 KiB of a thread's stack at most (docs/calling.md), so no frame more
# than 4 KiB. Sanitizers, builds for debugging and other compilers keep more there.
function(meshcoll_stack_options target)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT MESHCOLL_SANITIZE)
        target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-Wframe-larger-than=4096>)
    endif()
endfunction()

# meshcoll_alike_options(<target>): ranks choose alone, and must choose alike on processors of different
# models. So all that is added and compared is what IEEE 754 says of each operation: no multiply and add
# in one where a processor has that, no sums in another order, whatever CFLAGS says. Nor does src/compose
# or src/mesh call what libm rounds as it likes (log, pow, ...). tests/alike shows it.
function(meshcoll_alike_options target)
    target_compile_options(${target} PRIVATE -fno-fast-math -ffp-contract=off)
endfunction()

# For all targets at once: a sanitizer in half a program finds nothing.
if(MESHCOLL_SANITIZE STREQUAL "address,undefined")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
elseif(MESHCOLL_SANITIZE STREQUAL "thread")
    # gcc says that it does not see fences; what they order here is between processes
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
    add_link_options(-fsanitize=thread)
else()
    add_link_options(-Wl,--no-undefined)
endif()
if(MESHCOLL_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "MESHCOLL_FUZZ needs clang, not ${CMAKE_C_COMPILER_ID}: cmake --preset fuzz")
    endif()
    # counts edges; the targets alone are linked with libFuzzer itself (cmake/Fuzz.cmake)
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
add_link_options(-Wl,--as-needed)
