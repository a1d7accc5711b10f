# The target docs, where doxygen is: the API reference, in build/reference/html/index.html.

find_program(DOXYGEN_EXECUTABLE doxygen)
mark_as_advanced(DOXYGEN_EXECUTABLE)
if(DOXYGEN_EXECUTABLE)
    # doxygen makes one folder, not its parents.
    file(MAKE_DIRECTORY ${PROJECT_SOURCE_DIR}/build)
    add_custom_target(docs COMMAND ${DOXYGEN_EXECUTABLE} docs/Doxyfile
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM
        COMMENT "API reference: build/reference/html/index.html")
endif()
