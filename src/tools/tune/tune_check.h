/* Failures of meshcoll tune, which end all ranks. */
#ifndef MC_TOOLS_TUNE_CHECK_H
#define MC_TOOLS_TUNE_CHECK_H

#include <stddef.h>

/* Prints meshcoll_last_error() in one line on stderr and aborts all ranks. */
_Noreturn void mc_tune_die(const char *what);
/* The same for a status other than OK. */
void mc_tune_check(int status, const char *what);
/* Zeroed; never NULL. */
void *mc_tune_allocate(size_t bytes);

#endif
