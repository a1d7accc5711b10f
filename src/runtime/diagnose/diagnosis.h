/* What the hooks of a mesh keep. */
#ifndef MC_DIAGNOSE_DIAGNOSIS_H
#define MC_DIAGNOSE_DIAGNOSIS_H

#include "runtime/diagnose/check.h"
#include "runtime/diagnose/explain.h"

struct mc_diagnosis {
    mc_checks_t checks;    /* where its calls are compared */
    mc_explain_t *explain; /* NULL: its calls are not recorded */
};

#endif
