#include "base/system/log.h"

#include "base/system/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 2048 };

static const char *const level_name[] = {"warn", "info", "debug"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static mc_log_level_t most = MC_LOG_WARN;
static int file = STDERR_FILENO;

static bool is_alike(const char *a, const char *b, size_t n)
{
    size_t i = 0;
    while (i < n && mc_upper(a[i]) == mc_upper(b[i]))
        i++;
    return i == n;
}

/* Writes in one piece, so that the lines of ranks that share the file stay whole. */
static void say(const char *format, va_list args)
{
    char line[LINE] = "meshcoll: ";
    const size_t before = strlen(line);
    const int n = vsnprintf(line + before, sizeof line - before - 1, format, args);
    const size_t length = n < 0 ? before : before + (size_t)n;
    size_t end = length < sizeof line - 2 ? length : sizeof line - 2;
    line[end++] = '\n';
    const ssize_t written = write(file, line, end);
    (void)written; /* nobody is left to tell */
}

static void warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

static void read_variable(void)
{
    const char *const text = getenv("MESHCOLL_LOG");
    const char *const colon = text ? strchr(text, ':') : NULL;
    const size_t n = colon ? (size_t)(colon - text) : text ? strlen(text) : 0;
    size_t level = 0;
    if (n == 0 && !colon)
        return;
    while (level < MC_COUNT(level_name) &&
           (strlen(level_name[level]) != n || !is_alike(text, level_name[level], n)))
        level++;
    if (level == MC_COUNT(level_name) || (colon && !colon[1])) {
        warn("MESHCOLL_LOG takes warn, info or debug, and a file behind a colon if not stderr, as "
             "info:/tmp/job.log; got \"%.100s\"",
             text);
        return;
    }
    most = (mc_log_level_t)level;
    if (!colon)
        return;
    const int made =
        mc_descriptor(open(colon + 1, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
    if (made < 0)
        warn("MESHCOLL_LOG: %.500s cannot be written (%s): stderr has it", colon + 1,
             strerror(errno));
    else
        file = made;
}

bool mc_log_has(mc_log_level_t level)
{
    pthread_once(&once, read_variable);
    return level <= most;
}

void mc_log(mc_log_level_t level, const char *format, ...)
{
    va_list args;
    if (!mc_log_has(level))
        return;
    va_start(args, format);
    say(format, args);
    va_end(args);
}
