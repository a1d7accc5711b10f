#include "runtime/diagnose/diagnose.h"

#include "runtime/diagnose/check.h"
#include "runtime/diagnose/differ.h"
#include "runtime/diagnose/explain.h"
#include "runtime/diagnose/waits/limits.h"
#include "runtime/diagnose/waits/publish.h"

#include <stdlib.h>
#include <string.h>

/* Jobs ------------------------------------------------------------------------------------------- */

static int watches(mc_job_t *job, int64_t now_ms)
{
    const int status = mc_differ_ask(job, now_ms);
    return status ? status : mc_limits_poll(job, now_ms);
}

static const mc_job_hooks_t of_jobs = {.differs = mc_differ_check,
                                       .watches = watches,
                                       .ended = mc_waits_forget,
                                       .broke = mc_waits_break,
                                       .introduces = mc_differ_introduce,
                                       .meets = mc_differ_meet};

int mc_diagnose_open_job(mc_job_t *job)
{
    job->hooks = &of_jobs;
    return mc_waits_open(job);
}

void mc_diagnose_close_job(mc_job_t *job)
{
    mc_waits_close(job);
}

/* Meshes ----------------------------------------------------------------------------------------- */

static int open_checks(meshcoll_t *h, const char *text)
{
    if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return mc_fail(MESHCOLL_ERR_PARSE, "MESHCOLL_CHECK is 0 or 1; got '%s'", text);
    if (!text || *text == '0')
        return MESHCOLL_OK;
    h->checks = calloc(1, sizeof *h->checks);
    if (!h->checks)
        return mc_fail_memory("the comparison of calls");
    h->hooks.compare = mc_check_call;
    h->hooks.compare_now = mc_check_call_now;
    h->hooks.refused = mc_check_refused;
    h->hooks.group_opened = mc_check_group_opened;
    h->hooks.group_added = mc_check_group_added;
    h->hooks.group_refused = mc_check_group_refused;
    h->hooks.group_ends = mc_check_group_ends;
    return MESHCOLL_OK;
}

static int open_explain(meshcoll_t *h, const mc_settings_t *settings)
{
    const int status = mc_explain_create(settings, &h->explain);
    if (status || !h->explain)
        return status;
    h->hooks.made = mc_explain_made;
    h->hooks.binds = mc_explain_binds;
    h->hooks.bound = mc_explain_bound;
    h->hooks.ran = mc_explain_ran;
    h->hooks.freed = mc_explain_freed;
    h->hooks.on_gpu = mc_explain_on_gpu;
    h->hooks.took = mc_explain_took;
    return MESHCOLL_OK;
}

int mc_diagnose_open(meshcoll_t *h, const mc_settings_t *settings)
{
    int status = open_checks(h, settings->check);
    if (!status)
        status = open_explain(h, settings);
    if (status)
        mc_diagnose_close(h);
    return status;
}

void mc_diagnose_close(meshcoll_t *h)
{
    mc_explain_destroy(h->explain);
    if (h->checks)
        free(h->checks->call);
    free(h->checks);
    h->explain = NULL;
    h->checks = NULL;
    h->hooks = (mc_hooks_t){0};
}

void mc_diagnose_report(const meshcoll_t *h)
{
    if (h->explain)
        mc_explain_print(h);
}
