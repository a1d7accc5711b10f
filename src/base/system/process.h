/* Threads of this process, and other processes of its PID namespace. */
#ifndef MC_BASE_PROCESS_H
#define MC_BASE_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* As pthread_create, with all signals blocked in it: the program's are not for it. */
int mc_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* Has it ended, though its parent may not have waited for it yet? A process that /proc does not show lives. */
bool mc_process_has_ended(pid_t pid);

#endif
