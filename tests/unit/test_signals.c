/* UCX takes signals when it is loaded: the program gets them back, unless it asked for that. */
#include "transport/ucx.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucs/debug/debug.h>
#include <unistd.h>

enum { ERRORS = 1, HANGUP = 2 };

static bool is_of_ucx(int number)
{
    Dl_info handler, ucx;
    struct sigaction action;
    void (*const known)(int) = ucs_debug_disable_signal;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           dladdr((void *)action.sa_handler, &handler) && dladdr((void *)known, &ucx) &&
           handler.dli_fbase == ucx.dli_fbase;
}

/* What a fresh process finds, also when UCX is in use. */
static int taken(void)
{
    static const int errors[] = {SIGILL, SIGBUS, SIGFPE, SIGSEGV};
    mc_transport_t *t;
    const mc_ucx_params_t params = {.tls = "tcp,self", .dim = "gpu"};
    if (mc_ucx_create(&params, &t))
        return 64;
    int found = is_of_ucx(SIGHUP) ? HANGUP : 0;
    for (size_t i = 0; i < MC_COUNT(errors); i++)
        found |= is_of_ucx(errors[i]) ? ERRORS : 0;
    t->ops->close(t);
    return found;
}

/* In an environment of that alone: Criterion's own would make it one of its tests. */
static int taken_with(const char *setting)
{
    int how;
    const pid_t child = fork();
    if (child == 0) {
        execle("/proc/self/exe", "test_signals", "--taken", (char *)NULL,
               (const char *const[]){setting, NULL});
        _exit(65);
    }
    cr_assert(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how));
    return WEXITSTATUS(how);
}

Test(signals, are_the_programs)
{
    cr_expect_eq(taken_with(NULL), 0);
}

Test(signals, are_ucxs_where_it_was_asked)
{
    cr_expect_eq(taken_with("UCX_HANDLE_ERRORS=bt"), ERRORS);
    cr_expect_eq(taken_with("UCX_HANDLE_ERRORS=none"), 0);
    cr_expect_eq(taken_with("UCX_DEBUG_SIGNO=SIGHUP"), HANGUP);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--taken") == 0)
        return taken();
    struct criterion_test_set *const tests = criterion_initialize();
    const int status =
        criterion_handle_args(argc, argv, true) ? !criterion_run_all_tests(tests) : 0;
    criterion_finalize(tests);
    return status;
}
