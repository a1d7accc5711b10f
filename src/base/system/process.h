/* Threads of this process, and other processes of its PID namespace. */
#ifndef MC_BASE_PROCESS_H
#define MC_BASE_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* Starts a thread that blocks all signals, as the program's are not for it. Returns what pthread_create does. */
int mc_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* Has it ended, though its parent may not have waited for it yet? A process that /proc does not show lives. */
bool mc_process_has_ended(pid_t pid);

#endif
