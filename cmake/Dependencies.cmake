# Everything comes from the distribution. What is missing is named all together, with the Debian
# package that brings it; the build stops after the list.

set(missing)
set(missing_packages)
macro(meshcoll_missing what package)
    list(APPEND missing "  ${what} not found: apt-get install ${package}")
    list(APPEND missing_packages ${package})
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

set(MESHCOLL_MPI AUTO CACHE STRING
    "libmeshcoll-mpi, and the programs and tests that need MPI: AUTO (where MPI is found), ON or OFF")
set_property(CACHE MESHCOLL_MPI PROPERTY STRINGS AUTO ON OFF)
if(NOT MESHCOLL_MPI MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "MESHCOLL_MPI is \"${MESHCOLL_MPI}\": expected AUTO, ON or OFF")
endif()
set(MESHCOLL_HAVE_MPI OFF)
if(NOT MESHCOLL_MPI STREQUAL "OFF")
    find_package(MPI QUIET COMPONENTS C)
    set(MESHCOLL_HAVE_MPI ${MPI_C_FOUND})
endif()
# Each MPI has an ABI of its own: the library of another one than Open MPI has its name, so that they lie side by side.
set(MESHCOLL_MPI_NAME mpi)
set(MESHCOLL_MPI_IS "Open MPI")
if(MESHCOLL_HAVE_MPI)
    include(CheckSymbolExists)
    set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
    check_symbol_exists(I_MPI_VERSION mpi.h MESHCOLL_MPI_IS_INTEL)
    check_symbol_exists(MVAPICH_VERSION mpi.h MESHCOLL_MPI_IS_MVAPICH)
    check_symbol_exists(MVAPICH2_VERSION mpi.h MESHCOLL_MPI_IS_MVAPICH2)
    check_symbol_exists(MPICH_VERSION mpi.h MESHCOLL_MPI_IS_MPICH)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(MESHCOLL_MPI_IS_INTEL)
        set(MESHCOLL_MPI_NAME impi)
        set(MESHCOLL_MPI_IS "Intel MPI")
    elseif(MESHCOLL_MPI_IS_MVAPICH OR MESHCOLL_MPI_IS_MVAPICH2)
        set(MESHCOLL_MPI_NAME mvapich)
        set(MESHCOLL_MPI_IS "MVAPICH")
    elseif(MESHCOLL_MPI_IS_MPICH)
        set(MESHCOLL_MPI_NAME mpich)
        set(MESHCOLL_MPI_IS "MPICH")
    endif()
endif()
if(MESHCOLL_MPI STREQUAL "ON" AND NOT MESHCOLL_HAVE_MPI)
    meshcoll_missing("MPI (C) (or -DMESHCOLL_MPI=OFF)" "libopenmpi-dev openmpi-bin")
endif()

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    # meshcoll_pkg(<prefix> <what to say> <module> <Debian package>)
    macro(meshcoll_pkg prefix what module package)
        pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL "${module}")
        if(NOT ${prefix}_FOUND)
            meshcoll_missing("${what}" ${package})
        endif()
    endmacro()

    meshcoll_pkg(UCX "UCX >= 1.13" "ucx>=1.13" libucx-dev)
    meshcoll_pkg(HWLOC "hwloc >= 2.4" "hwloc>=2.4" libhwloc-dev)
    meshcoll_pkg(JANSSON "jansson >= 2.13" "jansson>=2.13" libjansson-dev)
    meshcoll_pkg(CRYPTO "libcrypto (OpenSSL) >= 3.0" "libcrypto>=3.0" libssl-dev)
    pkg_check_modules(PROTOBUF_C QUIET IMPORTED_TARGET GLOBAL libprotobuf-c) # of meshcoll export alone
    find_program(MESHCOLL_PROTOC_C protoc-c)
    if(MESHCOLL_BUILD_TESTS)
        meshcoll_pkg(CRITERION "Criterion >= 2.4 (or -DMESHCOLL_BUILD_TESTS=OFF)"
                     "criterion>=2.4" libcriterion-dev)
    endif()
else()
    meshcoll_missing("pkg-config (UCX, hwloc, jansson, libcrypto and Criterion are looked up with it)"
                     "pkg-config libucx-dev libhwloc-dev libjansson-dev libssl-dev libcriterion-dev")
endif()

set(MESHCOLL_HAVE_CHAKRA OFF)
if(PROTOBUF_C_FOUND AND MESHCOLL_PROTOC_C)
    set(MESHCOLL_HAVE_CHAKRA ON)
endif()

if(missing)
    list(JOIN missing "\n" missing)
    list(JOIN missing_packages " " missing_packages)
    message(FATAL_ERROR "meshcoll needs what is not on this machine:\n${missing}\n"
            "All at once: apt-get install ${missing_packages}, or scripts/deps.sh")
endif()

add_library(meshcoll_dependencies INTERFACE)
target_link_libraries(meshcoll_dependencies INTERFACE
    PkgConfig::UCX PkgConfig::HWLOC PkgConfig::JANSSON PkgConfig::CRYPTO Threads::Threads
    ${CMAKE_DL_LIBS} m)
# headers of UCX 1.22 say asm, which is no word of C11
target_compile_definitions(meshcoll_dependencies INTERFACE asm=__asm__)
