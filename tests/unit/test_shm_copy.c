/* Copies to and from pages, wherever in their pages they begin. */
#include "transport/shm/bytes/shm_copy.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { PAGE = 4096, ROOM = 3 * PAGE };

/* Bytes of a copy, and nothing beside it. */
static void expect_copied(const unsigned char *from, unsigned char *room, size_t at, size_t n)
{
    memset(room, 0xee, ROOM);
    mc_shm_copy(room + at, from, n);
    cr_expect_arr_eq(room + at, from, n, "%zu bytes to %zu", n, at);
    cr_expect(at == 0 || room[at - 1] == 0xee, "before %zu bytes at %zu", n, at);
    cr_expect_eq(room[at + n], 0xee, "behind %zu bytes at %zu", n, at);
}

static void expect_all_copied(void)
{
    static const size_t offsets[] = {0, 1, 16, 31, 32, 33, 4080, 4095};
    static const size_t bytes[] = {1, 64, 1023, 1024, 1025, 1100, PAGE};
    unsigned char *const from = aligned_alloc(PAGE, PAGE), *const room = aligned_alloc(PAGE, ROOM);
    for (int i = 0; i < PAGE; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++)
            expect_copied(from, room, offsets[i], bytes[k]);
    free(from);
    free(room);
}

Test(shm_copy, as_the_processor_does_it_best)
{
    mc_shm_copy_init();
    expect_all_copied();
}

Test(shm_copy, without_the_string_instruction)
{
    mc_shm_string_is_fast = false;
    expect_all_copied();
}

Test(shm_copy, lines_and_what_is_left)
{
    unsigned char from[200], to[201];
    for (size_t n = 0; n <= sizeof from; n++) {
        for (size_t i = 0; i < sizeof from; i++)
            from[i] = (unsigned char)(i + n);
        memset(to, 0xee, sizeof to);
        mc_shm_copy_lines(to, from, n);
        cr_expect_arr_eq(to, from, n);
        cr_expect_eq(to[n], 0xee);
    }
}
