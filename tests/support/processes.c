#include "support/processes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void *mc_processes_share(size_t bytes)
{
    void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

void mc_meeting_init(mc_meeting_t *meeting, int size)
{
    pthread_barrierattr_t shared;
    if (size > MC_PROCESSES)
        abort();
    meeting->size = size;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &shared, (unsigned)size);
}

static int allgather(void *context, const void *in, void *out, size_t bytes)
{
    const mc_seat_t *const seat = context;
    mc_meeting_t *const meeting = seat->meeting;
    if (bytes > MC_PROCESS_TOLD)
        return 1;
    memcpy(meeting->told[seat->rank], in, bytes);
    pthread_barrier_wait(&meeting->barrier);
    for (int r = 0; r < meeting->size; r++)
        memcpy((char *)out + (size_t)r * bytes, meeting->told[r], bytes);
    pthread_barrier_wait(&meeting->barrier);
    return 0;
}

meshcoll_oob_t mc_seat_oob(mc_seat_t *seat)
{
    return (meshcoll_oob_t){
        .rank = seat->rank, .size = seat->meeting->size, .context = seat, .allgather = allgather};
}

void mc_processes_fork(mc_meeting_t *meeting, int (*run)(const void *context, mc_seat_t *seat),
                       const void *context, pid_t *pid)
{
    for (int r = 0; r < meeting->size; r++) {
        pid[r] = fork();
        if (pid[r] < 0)
            abort();
        if (pid[r] == 0)
            _exit(run(context, &(mc_seat_t){meeting, r}));
    }
}

int mc_process_await(pid_t pid)
{
    int how;
    if (waitpid(pid, &how, 0) != pid)
        abort();
    return WIFSIGNALED(how) ? -WTERMSIG(how) : WEXITSTATUS(how);
}

int mc_processes_run(int size, int (*run)(const void *context, mc_seat_t *seat),
                     const void *context)
{
    mc_meeting_t *const meeting = mc_processes_share(sizeof *meeting);
    pid_t pid[MC_PROCESSES];
    int failed = 0;
    mc_meeting_init(meeting, size);
    mc_processes_fork(meeting, run, context, pid);
    for (int r = 0; r < size; r++) {
        const int status = mc_process_await(pid[r]);
        failed = failed ? failed : status;
    }
    return failed;
}

bool mc_mesh_adds_up(meshcoll_t *mesh, float factor)
{
    const int n = meshcoll_size(mesh);
    const float in = factor * (float)(meshcoll_rank(mesh) + 1);
    float out = 0;
    return meshcoll_allreduce(mesh, &in, &out, 1, MESHCOLL_FLOAT32, MESHCOLL_SUM) == MESHCOLL_OK &&
           out == factor * (float)(n * (n + 1) / 2);
}
