/*
 * What a rank waits for and says of it: time limits, `meshcoll status`, MESHCOLL_CHECK and MESHCOLL_EXPLAIN. Whoever
 * makes jobs and meshes opens it; the rooms below find it in their tables of hooks (handle/hooks.h).
 */
#ifndef MC_DIAGNOSE_DIAGNOSE_H
#define MC_DIAGNOSE_DIAGNOSE_H

#include "runtime/handle/handle.h"

/* Of a job: what it publishes of its waits, and its hooks. ERR_NO_MEMORY. */
int mc_diagnose_open_job(mc_job_t *job);
void mc_diagnose_close_job(mc_job_t *job);

/* A setting that is 0 or 1; NULL: 0. ERR_PARSE. */
int mc_switch_read(const char *name, const char *text, bool *on);
/* Of a mesh: what its settings ask for. ERR_PARSE, ERR_NO_MEMORY; then it has none. */
int mc_diagnose_open(meshcoll_t *h, const mc_settings_t *settings);
void mc_diagnose_close(meshcoll_t *h);
/* Prints what MESHCOLL_EXPLAIN asks for. */
void mc_diagnose_report(const meshcoll_t *h);

#endif
