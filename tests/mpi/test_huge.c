/* Persistent requests have what they move in huge pages, and nothing beside it; others have not. */
#include <meshcoll/mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { PAGE = 2 << 20, PAGES = 3, SKIPPED = 77 };

static int rank, size;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d: %s; last error: %s\n", rank, what, meshcoll_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* `pages` huge ones between two that nobody may touch, so that they are a mapping by themselves. */
static char *map_sparse(size_t pages)
{
    const size_t all = (pages + 2) * PAGE;
    char *const at = mmap(NULL, all + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED, "mmap");
    char *const first = at + (PAGE - (uintptr_t)at % PAGE) % PAGE + PAGE;
    check(mprotect(first, pages * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    return first;
}

static char *map(size_t pages)
{
    return memset(map_sparse(pages), 1, pages * PAGE);
}

/* Bytes of the mapping at `first` that are in huge pages, or a failed check. */
static size_t huge_bytes(const char *first)
{
    FILE *const file = fopen("/proc/self/smaps", "r");
    char line[512];
    int here = 0;
    unsigned long begin, end, kib;
    check(file != NULL, "smaps");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            here = begin == (uintptr_t)first;
        else if (here && sscanf(line, "AnonHugePages: %lu", &kib) == 1) {
            fclose(file);
            return kib * 1024;
        }
    }
    check(0, "the mapping is not in smaps");
    return 0;
}

static void allgather(meshcoll_t *mesh, const char *in, char *out, size_t bytes, int persistent)
{
    meshcoll_request_t *r;
    memset(out, 0, bytes * (size_t)size);
    if (!persistent) {
        check(meshcoll_allgather(mesh, in, out, bytes, MESHCOLL_UINT8) == MESHCOLL_OK, "a call");
    } else {
        check(meshcoll_allgather_init(mesh, in, out, bytes, MESHCOLL_UINT8, &r) == MESHCOLL_OK,
              "init");
        check(meshcoll_start(r) == MESHCOLL_OK && meshcoll_wait(r) == MESHCOLL_OK, "a run");
        meshcoll_free(r);
    }
    check(out[0] == 1 && memcmp(out, out + 1, bytes * (size_t)size - 1) == 0, "what came");
}

/* Huge pages here, and the right to ask for them? */
static int can_collapse(void)
{
    char text[64] = "[never]";
    FILE *const file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    char *const at = map(1);
    if (file && !fgets(text, sizeof text, file))
        text[0] = '\0';
    if (file)
        fclose(file);
    const int can = !strstr(text, "[never]") && !strstr(text, "[always]") &&
                    madvise(at, PAGE, MADV_COLLAPSE) == 0 && huge_bytes(at) == PAGE;
    int all;
    MPI_Allreduce(&can, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static void test_pages(meshcoll_t *mesh)
{
    char *const in = map(PAGES), *const out = map(PAGES * (size_t)size);
    char *const kept_out = map(PAGES);
    check(madvise(kept_out, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE) == 0, "MADV_NOHUGEPAGE");
    allgather(mesh, in, out, (size_t)PAGES * PAGE, 0);
    check(huge_bytes(in) == 0 && huge_bytes(out) == 0, "a blocking call moves no pages");
    allgather(mesh, in + 4096, out, PAGE + 8192, 1);
    check(huge_bytes(in) == 0, "no huge page lies in these bytes whole");
    allgather(mesh, in + 4096, out, 2 * PAGE, 1);
    check(huge_bytes(in) == PAGE, "one does");
    allgather(mesh, in, out, (size_t)PAGES * PAGE, 1);
    check(huge_bytes(in) == (size_t)PAGES * PAGE, "all of the input");
    check(huge_bytes(out) == (size_t)PAGES * (size_t)size * PAGE, "all of the output");
    allgather(mesh, kept_out, out, (size_t)PAGES * PAGE, 1);
    check(huge_bytes(kept_out) == 0, "its owner said no");
}

/* Memory that the program has not touched stays so. */
static void test_sparse(meshcoll_t *mesh)
{
    char *const in = map_sparse(PAGES), *const out = map(PAGES * (size_t)size);
    meshcoll_request_t *r;
    in[0] = in[2 * PAGE] = 1;
    check(meshcoll_allgather_init(mesh, in, out, (size_t)PAGES * PAGE, MESHCOLL_UINT8, &r) ==
              MESHCOLL_OK,
          "init of sparse memory");
    check(huge_bytes(in) == 0, "sparse memory is in huge pages");
    check(huge_bytes(out) == (size_t)PAGES * (size_t)size * PAGE, "what it is received into");
    meshcoll_free(r);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int can = can_collapse();
    if (can) {
        meshcoll_t *mesh = NULL;
        check(meshcoll_create(MPI_COMM_WORLD, NULL, &mesh) == MESHCOLL_OK, "create");
        test_pages(mesh);
        test_sparse(mesh);
        meshcoll_destroy(mesh);
    } else if (rank == 0) {
        printf("skipped: the kernel does not collapse pages here, or does without being asked\n");
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return can ? 0 : SKIPPED;
}
