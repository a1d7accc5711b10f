# The kernels of the device executor (src/gpu/kernel/kernel.cu), compiled by nvcc for each architecture: cubin, PTX
# and what ptxas says, in build/.../device. They are checked (scripts/check-kernels.sh), and all cubins and the
# newest PTX are in the library as one fat binary (src/gpu/cuda/image.c), which newer GPUs take too. They take a minute
# to compile: AUTO compiles them only where there is a driver, for the GPUs that it has; ON for every architecture.
# Without kernels the library refuses calls on device memory. With OFF it has nothing of src/gpu.

if(NOT MESHCOLL_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "MESHCOLL_CUDA is \"${MESHCOLL_CUDA}\": expected AUTO, ON or OFF")
endif()

# meshcoll_find_driver(<variable>): is there a driver of NVIDIA GPUs on this machine?
function(meshcoll_find_driver result)
    find_library(driver NAMES libcuda.so.1 NO_CACHE)
    if(driver OR EXISTS /dev/nvidia0)
        set(${result} ON PARENT_SCOPE)
    else()
        set(${result} OFF PARENT_SCOPE)
    endif()
endfunction()

# meshcoll_gpu_archs(<variable> <all>): those of <all>, in rising order, whose cubins the GPUs of this machine run (or
# the newest before theirs, whose PTX they compile); <all> where that cannot be told.
function(meshcoll_gpu_archs result all)
    set(${result} ${all} PARENT_SCOPE)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE caps ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed OR NOT caps MATCHES "^[0-9.\n]+$")
        return()
    endif()
    string(REPLACE "\n" ";" caps "${caps}")
    set(archs)
    foreach(cap IN LISTS caps)
        string(REPLACE "." "" cap ${cap})
        set(newest)
        foreach(arch IN LISTS all)
            if(NOT arch GREATER cap)
                set(newest ${arch})
            endif()
        endforeach()
        if(NOT newest) # older than all: nothing here runs on it
            return()
        endif()
        list(APPEND archs ${newest})
    endforeach()
    list(REMOVE_DUPLICATES archs)
    list(SORT archs COMPARE NATURAL)
    set(${result} ${archs} PARENT_SCOPE)
endfunction()

set(MESHCOLL_HAVE_CUDA OFF)
meshcoll_find_driver(cuda_driver)
if(MESHCOLL_CUDA STREQUAL "ON" OR (MESHCOLL_CUDA STREQUAL "AUTO" AND cuda_driver))
    find_package(CUDAToolkit QUIET)
    find_program(MESHCOLL_NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR} /usr/local/cuda/bin)
    if(MESHCOLL_NVCC)
        set(MESHCOLL_HAVE_CUDA ON)
    elseif(MESHCOLL_CUDA STREQUAL "ON")
        message(FATAL_ERROR "MESHCOLL_CUDA is ON, but there is no nvcc on PATH or in /usr/local/cuda/bin: "
                "install the CUDA toolkit, or say -DMESHCOLL_CUDA=OFF")
    endif()
endif()
set(cuda_archs 80 90 100)
if(MESHCOLL_HAVE_CUDA AND MESHCOLL_CUDA STREQUAL "AUTO")
    meshcoll_gpu_archs(cuda_archs "${cuda_archs}")
endif()

# An older nvcc does not know the newest: the newest PTX that it makes serves those GPUs.
if(MESHCOLL_HAVE_CUDA)
    execute_process(COMMAND ${MESHCOLL_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET RESULT_VARIABLE failed)
    foreach(arch IN LISTS cuda_archs)
        if(NOT failed AND NOT known MATCHES "sm_${arch}(\n|$)")
            message(STATUS "CUDA: ${MESHCOLL_NVCC} does not know sm_${arch}: no kernels for it")
            list(REMOVE_ITEM cuda_archs ${arch})
        endif()
    endforeach()
    if(NOT cuda_archs)
        message(FATAL_ERROR "${MESHCOLL_NVCC} knows none of sm_80, sm_90 and sm_100: install CUDA 11.8 or newer, or say "
                "-DMESHCOLL_CUDA=OFF")
    endif()
endif()

set(cuda_folder ${PROJECT_BINARY_DIR}/device)
set(cuda_cubins)
if(MESHCOLL_HAVE_CUDA)
    file(GLOB cuda_texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/gpu/program/*.h
         ${PROJECT_SOURCE_DIR}/src/gpu/kernel/*.h ${PROJECT_SOURCE_DIR}/src/runtime/element/*.h)
    foreach(arch IN LISTS cuda_archs)
        add_custom_command(
            OUTPUT ${cuda_folder}/sm_${arch}.cubin
            COMMAND ${PROJECT_SOURCE_DIR}/scripts/compile-kernels.sh ${MESHCOLL_NVCC} ${arch} ${cuda_folder}
            DEPENDS ${PROJECT_SOURCE_DIR}/src/gpu/kernel/kernel.cu ${cuda_texts}
                    ${PROJECT_SOURCE_DIR}/scripts/compile-kernels.sh
            COMMENT "GPU kernels for sm_${arch}" VERBATIM)
        list(APPEND cuda_cubins ${cuda_folder}/sm_${arch}.cubin)
    endforeach()
    find_program(MESHCOLL_FATBINARY fatbinary HINTS ${CUDAToolkit_BIN_DIR} /usr/local/cuda/bin)
    if(NOT MESHCOLL_FATBINARY)
        message(FATAL_ERROR "there is ${MESHCOLL_NVCC}, but no fatbinary beside it: install the whole CUDA toolkit, "
                "or say -DMESHCOLL_CUDA=OFF")
    endif()
    set(cuda_image ${cuda_folder}/kernels.fatbin)
    list(GET cuda_archs -1 cuda_newest)
    set(cuda_parts)
    foreach(arch IN LISTS cuda_archs)
        list(APPEND cuda_parts --image3=kind=elf,sm=${arch},file=${cuda_folder}/sm_${arch}.cubin)
    endforeach()
    add_custom_command(
        OUTPUT ${cuda_image}
        COMMAND ${MESHCOLL_FATBINARY} -64 --compress-all --create=${cuda_image} ${cuda_parts}
                --image3=kind=ptx,sm=${cuda_newest},file=${cuda_folder}/sm_${cuda_newest}.ptx
        DEPENDS ${cuda_cubins} COMMENT "GPU kernels as one fat binary" VERBATIM)
    add_custom_target(meshcoll_kernels ALL DEPENDS ${cuda_image})
    add_dependencies(meshcoll_objects meshcoll_kernels)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/gpu/cuda/image.c PROPERTIES
        COMPILE_DEFINITIONS "MESHCOLL_KERNELS=\"${cuda_image}\"" OBJECT_DEPENDS ${cuda_image})
endif()
if(MESHCOLL_BUILD_TESTS)
    add_test(NAME device.kernels COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-kernels.sh ${cuda_folder})
    set_tests_properties(device.kernels PROPERTIES LABELS device TIMEOUT 300 SKIP_RETURN_CODE 77)
    include(TestsPtx)
endif()
