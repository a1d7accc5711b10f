#include "tools/common/options.h"

#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 48, HELP = 'h', FIRST = 256, LEFT_TEXT = 64, MOST_LEFT = 26 };

static bool is_end(const mc_option_t *option)
{
    return !option->name && !option->heading;
}

/* Help ------------------------------------------------------------------------------------------- */

/* "  -b, --begin BYTES" */
static int left_of(const mc_option_t *option, char left[LEFT_TEXT])
{
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    return snprintf(left, LEFT_TEXT, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
                    option->value ? option->value : "");
}

static void print_option(const mc_option_t *option, int column, FILE *out)
{
    char left[LEFT_TEXT];
    const int n = left_of(option, left);
    fprintf(out, "%-*s%s", column, left, n + 2 > column ? "  " : "");
    for (const char *line = option->help; line;) {
        const size_t length = strcspn(line, "\n");
        fprintf(out, "%.*s\n", (int)length, line);
        line = line[length] ? line + length + 1 : NULL;
        if (line)
            fprintf(out, "%*s", column, "");
    }
}

void mc_options_print(const mc_option_t *option, FILE *out)
{
    char left[LEFT_TEXT];
    int column = 0;
    for (const mc_option_t *o = option; !is_end(o); o++) {
        const int n = o->heading ? 0 : left_of(o, left) + 2;
        column = n > column && n <= MOST_LEFT ? n : column;
    }
    for (const mc_option_t *o = option; !is_end(o); o++)
        if (o->heading)
            fprintf(out, "\n%s\n", o->heading);
        else
            print_option(o, column, out);
    print_option(&(mc_option_t){.name = "help", .help = "this text"}, column, out);
}

/* Values ----------------------------------------------------------------------------------------- */

static int read_number(const mc_option_t *option, const char *value)
{
    char *end;
    errno = 0;
    const long number = strtol(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || *end || errno || number < option->least ||
        number > option->most)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--%s takes a number from %d to %d; got '%s'",
                       option->name, option->least, option->most, value);
    *option->number = (int32_t)number;
    return MESHCOLL_OK;
}

static int read_real(const mc_option_t *option, const char *value)
{
    char *end;
    const double number = mc_number_read(value, &end);
    if (end == value || *end || strpbrk(value, "xX") ||
        !(number >= option->from && number <= option->to))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "--%s takes a number from %g to %g; got '%s'",
                       option->name, option->from, option->to, value);
    *option->real = number;
    return MESHCOLL_OK;
}

static int read_bytes(const mc_option_t *option, const char *value)
{
    uint64_t bytes;
    if (mc_parse_bytes(value, &bytes) || bytes == 0)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "--%s takes bytes such as 1024, 64K or 8M; got '%s'", option->name, value);
    *option->bytes = bytes;
    return MESHCOLL_OK;
}

static int read_value(const mc_option_t *option, const char *value)
{
    if (option->number)
        return read_number(option, value);
    if (option->real)
        return read_real(option, value);
    if (option->bytes)
        return read_bytes(option, value);
    if (option->texts)
        return mc_array_add(&option->texts->at, &option->texts->n, &option->texts->capacity, &value,
                            sizeof value, "the values of an option");
    if (option->flag)
        *option->flag = true;
    else
        *option->text = value;
    return MESHCOLL_OK;
}

/* The line --------------------------------------------------------------------------------------- */

static int refuse_unknown(const mc_option_t *option, const char *text)
{
    char known[768];
    mc_text_t list = mc_text(known, sizeof known);
    const char *const word = text + strspn(text, "-"); /* maybe with its value, NAME=VALUE */
    const size_t n = strcspn(word, "=");
    mc_nearest_t near = mc_nearest(word, n);
    for (int i = 0; !is_end(&option[i]); i++)
        if (option[i].name) {
            mc_nearest_try(&near, option[i].name);
            mc_text_add(&list, "--%s, ", option[i].name);
        }
    if (near.found)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG, "there is no option '%s': did you mean --%s?",
                       text, near.found);
    return mc_fail(MESHCOLL_ERR_INVALID_ARG, "there is no option '%s'; expected one of %s--help",
                   text, known);
}

static int read_arguments(char **argv, int n, const mc_arguments_t *arguments)
{
    if (arguments->program)
        *arguments->program = argv;
    else if (n > (arguments->text ? 1 : 0))
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "'%s' is one argument too many; --help shows what is taken",
                       argv[arguments->text ? 1 : 0]);
    else if (n > 0)
        *arguments->text = argv[0];
    return MESHCOLL_OK;
}

/* getopt's tables: `longs` with the option's index behind FIRST, `shorts` for letters. */
static void make_tables(const mc_option_t *option, bool program, struct option *longs, char *shorts)
{
    int n = 0;
    *longs++ = (struct option){"help", no_argument, NULL, HELP};
    if (program)
        *shorts++ = '+'; /* end at the first argument */
    *shorts++ = ':';     /* report a missing value separately */
    *shorts++ = HELP;
    for (; !is_end(&option[n]) && n < MAX_OPTIONS; n++) {
        const mc_option_t *const o = &option[n];
        if (o->name)
            *longs++ = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                       FIRST + n};
        if (o->letter)
            *shorts++ = o->letter;
        if (o->letter && o->value)
            *shorts++ = ':';
    }
    *longs = (struct option){0};
    *shorts = '\0';
}

static const mc_option_t *find(const mc_option_t *option, int found)
{
    if (found >= FIRST)
        return &option[found - FIRST];
    for (; !is_end(option); option++)
        if (option->letter && option->letter == found)
            return option;
    return NULL;
}

int mc_options_read(const mc_option_t *option, int argc, char **argv,
                    const mc_arguments_t *arguments, bool *help)
{
    struct option longs[MAX_OPTIONS + 2];
    char shorts[2 * MAX_OPTIONS + 4];
    make_tables(option, arguments->program, longs, shorts);
    *help = false;
    opterr = 0;
    optind = 0; /* glibc: from the start again */
    for (;;) {
        const int found = getopt_long(argc, argv, shorts, longs, NULL);
        const mc_option_t *const known = find(option, found);
        if (found == -1)
            return read_arguments(argv + optind, argc - optind, arguments);
        if (found == HELP) {
            *help = true;
            return MESHCOLL_OK;
        }
        if (found == ':')
            return mc_fail(MESHCOLL_ERR_INVALID_ARG, "%s needs a value", argv[optind - 1]);
        const int status =
            known ? read_value(known, optarg) : refuse_unknown(option, argv[optind - 1]);
        if (status)
            return status;
    }
}
