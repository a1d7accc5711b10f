/*
 * What the library says besides errors, a line each: MESHCOLL_LOG=warn|info|debug[:FILE] (docs/troubleshooting.md). To
 * stderr, or appended to FILE, which ranks may share. Never said in the path of a call that goes well and was made
 * before.
 */
#ifndef MC_BASE_LOG_H
#define MC_BASE_LOG_H

#include "base/base.h"

typedef enum { MC_LOG_WARN, MC_LOG_INFO, MC_LOG_DEBUG } mc_log_level_t;

/* Is a line of this level said? The variable is read when a process asks first. */
bool mc_log_has(mc_log_level_t level);
/* Says it, behind "meshcoll: "; the text has no newline. */
void mc_log(mc_log_level_t level, const char *format, ...) MC_PRINTF(2, 3);

#endif
