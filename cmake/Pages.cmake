# Run by an installation: the pages, in `pages` as they are installed. They lie to each other as in the sources; headers
# are where compilers look for them, and what is not installed is named without a link.
#   source, pages   folders        headers   from the pages' folder        with_mpi   is mpi.h installed?

set(absent "src|tests|scripts|python|bench|cmake")
if(NOT with_mpi)
    string(APPEND absent "|include/meshcoll/mpi\\.h")
endif()
file(REMOVE_RECURSE ${pages})
file(GLOB files RELATIVE ${source} ${source}/*.md ${source}/docs/*.md ${source}/docs/*/*.md)
foreach(file IN LISTS files)
    file(READ ${source}/${file} text)
    string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)*(${absent})(/[^)]*)?\\)" "\\1" text "${text}")
    string(REGEX REPLACE "\\(((\\.\\./)*)include/" "(\\1${headers}/" text "${text}")
    file(WRITE ${pages}/${file} "${text}")
endforeach()
file(COPY ${source}/LICENSE DESTINATION ${pages})
file(COPY ${source}/docs/pictures DESTINATION ${pages}/docs)
