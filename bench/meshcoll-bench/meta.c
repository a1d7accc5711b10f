/* Metadata of a run. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

static void find_cpu(char *cpu, size_t capacity)
{
    char line[256];
    FILE *const file = fopen("/proc/cpuinfo", "r");
    snprintf(cpu, capacity, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(cpu, capacity, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        fclose(file);
}

/* The command line, quoted where a shell would need it. */
static void join_command(int argc, char **argv, mc_text_t *text)
{
    const char *const slash = strrchr(argv[0], '/');
    mc_text_add(text, "%s", slash ? slash + 1 : argv[0]);
    for (int i = 1; i < argc; i++) {
        const bool plain = argv[i][0] && !argv[i][strcspn(argv[i], " \n;()*'\"$")];
        mc_text_add(text, plain ? " %s" : " '%s'", argv[i]);
    }
}

void meta_make(const bench_t *bench, int argc, char **argv, meta_t *meta)
{
    memset(meta, 0, sizeof *meta);
    const time_t now = time(NULL);
    struct tm utc;
    strftime(meta->date, sizeof meta->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    find_cpu(meta->cpu, sizeof meta->cpu);
    gethostname(meta->host, sizeof meta->host - 1);
    snprintf(meta->ucx, sizeof meta->ucx, "%s", ucp_get_version_string());
    meta->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);

    mc_text_t links = mc_text(meta->links, sizeof meta->links);
    mc_links_print(&bench->links, &bench->mesh, &links);
    mc_text_t command = mc_text(meta->command, sizeof meta->command);
    join_command(argc, argv, &command);
}
