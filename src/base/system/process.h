/* Other processes of this PID namespace. */
#ifndef MC_BASE_PROCESS_H
#define MC_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Has it ended, though its parent may not have waited for it yet? A process that /proc does not show lives. */
bool mc_process_has_ended(pid_t pid);

#endif
