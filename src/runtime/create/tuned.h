/*
 * The links that `meshcoll tune` measured, in a JSON file by cluster (docs/links.md). The command
 * writes it; rank 0 looks it up once when a mesh is created without links.
 */
#ifndef MC_RUNTIME_TUNED_H
#define MC_RUNTIME_TUNED_H

#include "mesh/link/link.h"
#include "runtime/place/boxes.h"
#include "runtime/place/settings.h"

enum { MC_CPU_TEXT = 128, MC_CLUSTER_TEXT = 512, MC_TUNED_PATH = 1024 };

/* What the measurements depend on. Plain memory, which can be sent. */
typedef struct {
    mc_mesh_t mesh;
    char tls[MC_MAX_DIMS][MC_TLS_TEXT]; /* transports by dimension */
    /* `cpu` and `cores` are those of this process's machine. */
    char cpu[MC_CPU_TEXT];
    int32_t cores, machines;
} mc_cluster_t;

/* The cluster that ranks at these places form with these settings. */
int mc_cluster_find(const mc_settings_t *settings, const mc_place_t *place, int32_t size,
                    mc_cluster_t *cluster);
/* The key in the file: "box=4,gpu=4 on 4 machines with 2 cores of …, box=tcp,self;gpu=shm". */
void mc_cluster_print(const mc_cluster_t *cluster, mc_text_t *text);
/* In the format of MESHCOLL_TRANSPORTS. */
void mc_cluster_print_transports(const mc_cluster_t *cluster, mc_text_t *text);

/* $MESHCOLL_TUNE_FILE, else a file in $XDG_CONFIG_HOME, else in ~/.config. */
int mc_tuned_path(char path[MC_TUNED_PATH]);

/* ERR_IO: the file cannot be read; ERR_PARSE: it is broken. Without a file, or without this
 * cluster in it, returns OK and `*links` is NULL; else the caller frees `*links`. */
int mc_tuned_read(const char *path, const mc_cluster_t *cluster, char **links);
/* The same of the file without its entries: may mc_tuned_write add to it? */
int mc_tuned_check(const char *path);

/* How deep the brackets of the file may nest; it needs 3 levels. Its size is limited by MC_FILE_BYTES, and that of its
 * links by MC_LINKS_MOST_READ. */
enum { MC_TUNED_DEPTH = 16 };
/* As mc_tuned_read, from the text of the file; `path` is for messages. */
int mc_tuned_parse(const char *path, const char *text, size_t bytes, const mc_cluster_t *cluster,
                   char **links);

typedef struct {
    const char *links; /* as mc_links_print writes them */
    const char *date, *command, *provenance;
} mc_tuned_t;

/* Replaces this cluster's entry and keeps all others, including those that other processes write
 * concurrently. Creates folders. The file is replaced as a whole, so it is never half-written; a
 * broken file is left as it is. */
int mc_tuned_write(const char *path, const mc_cluster_t *cluster, const mc_tuned_t *tuned);

/* How many bytes mc_tuned_use may add to the settings, as mc_settings_pack writes them. */
size_t mc_tuned_most(const mc_settings_t *settings);
/* Sets the links to those of the file, if there are some for this cluster, and the settings have
 * none. Warns in one line on stderr about a file that cannot be used, as one that was written meanwhile, whose links
 * make the settings longer than `most`. */
int mc_tuned_use(mc_settings_t *settings, const mc_place_t *place, int32_t size, size_t most);

#endif
