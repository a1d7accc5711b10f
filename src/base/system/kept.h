/*
 * What the library has found out and may need again: texts by kind and key, a file each, in $XDG_CACHE_HOME/meshcoll,
 * else ~/.cache/meshcoll, for this user alone. Losing it costs time and nothing else, so nothing here is an error: a
 * folder that cannot be written keeps nothing, and what is broken, cut off, of another version or of another key was
 * not kept. Nor was what another user owns or may write to. Processes may write at once: a file is replaced as a whole.
 */
#ifndef MC_BASE_KEPT_H
#define MC_BASE_KEPT_H

#include "base/base.h"

/* A text has at most so many bytes; longer ones are neither kept nor read. */
enum { MC_KEPT_BYTES = 1 << 16 };

/* `kind`: letters, which begin the file's name. `key`: a line. The caller frees the text; NULL: there is none. */
char *mc_kept_read(const char *kind, const char *key);
/* Returns whether it is kept. */
bool mc_kept_write(const char *kind, const char *key, const char *text);
void mc_kept_drop(const char *kind, const char *key);

#endif
