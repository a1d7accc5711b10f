/*
 * Links that are measured when a job is made, where nobody gives any: kept for the user's later jobs on the same cluster
 * (base/system/kept.h), and what calls have learned on them, or on tuned ones. Rank 0 looks both up and tells the
 * others, as it does with the links of `meshcoll tune`.
 */
#ifndef MC_CREATE_CALIBRATED_H
#define MC_CREATE_CALIBRATED_H

#include "runtime/create/rounds.h"
#include "runtime/place/settings.h"

/* How settings.links_from starts if they were measured so. */
#define MC_CALIBRATED_FROM "calibrated when a mesh was created here"

/* Seconds that MESHCOLL_CALIBRATE allows; 0: off. NULL: the default. ERR_PARSE. */
int mc_calibrate_read(const char *text, double *seconds);

/* How many bytes mc_calibrated_use may add to the settings, as mc_settings_pack writes them. */
size_t mc_calibrated_most(const mc_settings_t *settings);
/* On rank 0, whose user has not given links: sets them to those kept for this cluster, if tune's file has none; and
 * making->key and making->learned. `devices`: interfaces that lead to the other machines, "eth0,eth1". */
int mc_calibrated_use(mc_making_t *making, const char *devices);
/* Collective, when the job's first mesh is complete: measures its links where it has none, and lets later meshes of the
 * job have them, and later jobs. Takes in what calls of earlier jobs have learned on these links. */
int mc_calibrate(mc_making_t *making);
/* The links of a further mesh of the job: by the names of its dimensions, those of the job. The settings of its creation
 * say so then. ERR_NO_MEMORY. */
int mc_calibrated_share(mc_settings_t *settings, meshcoll_t *mesh);

#endif
