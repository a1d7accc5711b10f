/* What a monitor hears from another one: frames, and the news in them. */
#include "fuzz/fuzz.h"
#include "job/monitor/branch.h"
#include "job/monitor/news.h"

#include <ctype.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static void check_news(const mc_news_t *news)
{
    FUZZ_CHECK(news->kind < MC_NEWS_KINDS && news->status < 0, "%d", (int)news->status);
    FUZZ_CHECK(strlen(news->text) < sizeof news->text, "no end");
    for (const char *c = news->text; *c; c++)
        FUZZ_CHECK(!iscntrl((unsigned char)*c), "a control character");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mc_monitor_branch_t branch;
    const mc_frame_t *frame;
    mc_news_t news;
    int fd[2], error;
    size_t read = 0;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0, "%d", errno);
    FUZZ_CHECK(size == 0 || send(fd[1], data, size, MSG_NOSIGNAL) == (ssize_t)size, "%d", errno);
    FUZZ_CHECK(shutdown(fd[1], SHUT_WR) == 0, "%d", errno);
    branch = (mc_monitor_branch_t){.fd = fd[0]};
    while (!(error = mc_branch_read(&branch, &frame))) {
        FUZZ_CHECK(frame->bytes <= MC_FRAME_MOST, "%u", frame->bytes);
        read += sizeof *frame + frame->bytes;
        FUZZ_CHECK(read <= size, "more than was sent");
        if (frame->kind == MC_FRAME_NEWS && mc_news_read(&news, frame + 1, frame->bytes))
            check_news(&news);
    }
    FUZZ_CHECK(error == ESHUTDOWN || error == EPROTO, "%d", error);
    close(fd[0]);
    close(fd[1]);
    return 0;
}
