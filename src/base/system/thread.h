/* Threads of the library. */
#ifndef MC_BASE_THREAD_H
#define MC_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create, with all signals blocked in it: the program's are not for it. */
int mc_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

#endif
