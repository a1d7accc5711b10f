/* Opens and closes what a shared handle needs: its lock, and where it was asked for, a thread that moves it on. */
#ifndef MC_RUNTIME_PROGRESS_THREAD_H
#define MC_RUNTIME_PROGRESS_THREAD_H

#include "runtime/progress/progress.h"
#include "runtime/progress/threads.h"

/* As the settings say; h->threads is NULL where nobody shares the handle. */
int mc_threads_open(meshcoll_t *h, const mc_settings_t *settings);
void mc_threads_close(meshcoll_t *h);

/* Of a handle with a lock, which is held, and not in between. */
void mc_threads_turn(meshcoll_t *h, mc_waiting_t *w);

#endif
