/*
 * What the user chose for a mesh, by parameters or environment. All ranks take rank 0's, so that
 * they plan alike; it is read when the mesh is created and never after.
 */
#ifndef MC_RUNTIME_SETTINGS_H
#define MC_RUNTIME_SETTINGS_H

#include "base/base.h"

/* How settings.links_from begins where the links are those of a tuned file. */
#define MC_TUNED_FROM "measured by meshcoll tune"

/* Texts, NULL where not given. One allocation behind `memory`. */
typedef struct {
    const char *mesh, *links, *transports, *explain, *progress, *threads, *reproducible;
    const char *links_from; /* where the links were found, for people; NULL: nowhere */
    const char *strategy[MESHCOLL_COLLECTIVES];
    char *memory;
} mc_settings_t;

/* From this process's parameters (may be NULL) and environment. */
int mc_settings_read(const meshcoll_params_t *params, mc_settings_t *settings);
/* Rank 0's to all, unless a rank comes with an error. Collective. */
int mc_settings_share(const meshcoll_oob_t *oob, int status, mc_settings_t *settings);
void mc_settings_free(mc_settings_t *settings);

#endif
