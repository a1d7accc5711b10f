/*
 * The user's settings for a mesh, from parameters or environment. All ranks use rank 0's, so that
 * they plan identically. Read when the mesh is created and never after.
 */
#ifndef MC_RUNTIME_SETTINGS_H
#define MC_RUNTIME_SETTINGS_H

#include "base/base.h"

/* How settings.links_from starts if the links come from a tuned file. */
#define MC_TUNED_FROM "measured by meshcoll tune"

/* Texts, NULL where not given; all in one allocation, `memory`. */
typedef struct {
    const char *mesh, *links, *transports, *explain, *progress, *threads, *reproducible;
    const char *links_from; /* source of the links, for reports; NULL: none given */
    const char *strategy[MESHCOLL_COLLECTIVES];
    char *memory;
} mc_settings_t;

/* From this process's parameters (may be NULL) and environment. */
int mc_settings_read(const meshcoll_params_t *params, mc_settings_t *settings);
/* Distributes rank 0's settings. Fails on all ranks if `status` is an error on any. Collective. */
int mc_settings_share(const meshcoll_oob_t *oob, int status, mc_settings_t *settings);
void mc_settings_free(mc_settings_t *settings);

#endif
