/* The variables that mean something to this project, and those that a user may have misspelt. */
#ifndef MC_RUNTIME_VARIABLES_H
#define MC_RUNTIME_VARIABLES_H

#include <stdbool.h>

/* Does the name of a variable that begins with MESHCOLL_ mean anything? Else *nearest is the known name that is most
 * like it, or NULL where none is. */
bool mc_variable_known(const char *name, const char **nearest);
/* Warns of each in the environment that means nothing; once a process. */
void mc_variables_check(void);

#endif
