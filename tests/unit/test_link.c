#include "mesh/link/link.h"

#include <criterion/criterion.h>
#include <string.h>

static mc_mesh_t mesh_of(const char *text)
{
    mc_mesh_t mesh;
    cr_assert_eq(mc_mesh_parse(text, &mesh), MESHCOLL_OK, "%s", meshcoll_last_error());
    return mesh;
}

static mc_links_t links_of(const char *text, const char *mesh_text)
{
    mc_links_t links;
    const mc_mesh_t mesh = mesh_of(mesh_text);
    cr_assert_eq(mc_links_parse(text, &mesh, &links), MESHCOLL_OK, "%s: %s", text,
                 meshcoll_last_error());
    return links;
}

static bool same(const mc_link_t *a, const mc_link_t *b)
{
    return a->alpha == b->alpha && a->gap == b->gap && a->beta == b->beta && a->gamma == b->gamma &&
           a->call == b->call && a->ports == b->ports && a->pulled == b->pulled;
}

static bool same_correction(const mc_correction_t *a, const mc_correction_t *b)
{
    return a->window == b->window && a->burst == b->burst && a->cpu == b->cpu &&
           a->eager == b->eager;
}

static const mc_link_t *preset(const char *name)
{
    for (int32_t i = 0; i < mc_n_link_presets; i++)
        if (strcmp(mc_link_presets[i].name, name) == 0) {
            static mc_link_t link[4];
            static int next;
            mc_link_t *const copy = &link[next++ % 4];
            *copy = mc_link_presets[i].link;
            if (copy->gap == 0) /* not known */
                copy->gap = copy->alpha;
            return copy;
        }
    cr_assert_fail("no preset %s", name);
    return NULL;
}

static void expect_error(const char *text, const char *part)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    mc_links_t links = {.ndims = -7};
    cr_expect_lt(mc_links_parse(text, &mesh, &links), 0, "'%s' should not parse", text);
    cr_expect_not_null(strstr(meshcoll_last_error(), part), "'%s': '%s' lacks '%s'", text,
                       meshcoll_last_error(), part);
    cr_expect_eq(links.ndims, -7, "'%s' set the output", text);
}

Test(link, presets_are_usable_and_say_where_they_come_from)
{
    const mc_mesh_t mesh = mesh_of("x=2");
    for (int32_t i = 0; i < mc_n_link_presets; i++) {
        const mc_links_t links = {.ndims = 1, .dim = {mc_link_presets[i].link}};
        cr_expect_eq(mc_links_check(&links, &mesh), MESHCOLL_OK);
        cr_expect_gt(links.dim[0].beta, 0.0);
        cr_expect_gt(strlen(mc_link_presets[i].provenance), 20u);
        const mc_links_t named = links_of(mc_link_presets[i].name, "x=2");
        cr_expect(same(&named.dim[0], preset(mc_link_presets[i].name)));
    }
    for (int32_t i = 0; i < mc_n_cluster_presets; i++)
        links_of(mc_cluster_presets[i].name, "rack=2,box=4,gpu=8");
}

Test(link, lab_is_200_mbit_with_one_port)
{
    const mc_links_t links = links_of("lab", "box=4,gpu=4");
    cr_expect_eq(links.dim[0].beta, 40e-9);
    cr_expect_eq(links.dim[0].alpha, 7e-6);
    cr_expect_eq(links.dim[0].ports, 1);
    cr_expect_not(links.dim[0].pulled);
    cr_expect(links.dim[1].pulled);
}

Test(link, clusters_take_the_network_down_to_the_box)
{
    const mc_link_t *network = preset("infiniband-ndr-rails"), *inside = preset("nvlink4");
    const mc_links_t three = links_of("dgx-h100", "rack=2,box=4,gpu=8");
    cr_expect(same(&three.dim[0], network) && same(&three.dim[1], network));
    cr_expect(same(&three.dim[2], inside));
    const mc_links_t numa = links_of("dgx-h100", "box=2,numa=2,gpu=4");
    cr_expect(same(&numa.dim[0], network) && same(&numa.dim[1], inside));
    const mc_links_t unnamed = links_of("dgx-h100", "y=4,x=4");
    cr_expect(same(&unnamed.dim[0], network) && same(&unnamed.dim[1], inside));
    const mc_links_t one_box = links_of("dgx-h100", "gpu=8");
    cr_expect(same(&one_box.dim[0], inside));
    const mc_links_t ranks = links_of("dgx-h100", "rank=8");
    cr_expect(same(&ranks.dim[0], inside));
}

Test(link, a_link_of_gpu_holds_for_rank)
{
    const mc_links_t gpus = links_of("lab,gpu=shm", "box=2,gpu=4"),
                     ranks = links_of("lab,gpu=shm", "box=2,rank=4"),
                     back = links_of("lab,rank=shm", "box=2,gpu=4");
    for (int32_t d = 0; d < 2; d++)
        cr_expect(same(&ranks.dim[d], &gpus.dim[d]) && same(&back.dim[d], &gpus.dim[d]));
    cr_expect(same(&ranks.dim[1], preset("shm")));
}

Test(link, nothing_given_is_the_first_cluster_preset)
{
    const mc_links_t named = links_of(mc_cluster_presets[0].name, "box=4,gpu=8");
    const mc_links_t none = links_of(NULL, "box=4,gpu=8"), empty = links_of("", "box=4,gpu=8");
    for (int32_t d = 0; d < 2; d++)
        cr_expect(same(&none.dim[d], &named.dim[d]) && same(&empty.dim[d], &named.dim[d]));
}

Test(link, dimensions_by_preset_by_hand_and_both)
{
    const mc_links_t a = links_of("gpu=nvlink4,box=ethernet-25g;ports:2", "box=4,gpu=8");
    cr_expect_eq(a.dim[0].ports, 2);
    cr_expect_eq(a.dim[0].beta, 8 / 25e9);
    cr_expect(same(&a.dim[1], preset("nvlink4")));

    const mc_links_t b = links_of("box=alpha:7us;beta:40ns/KiB,gpu=alpha:300ns;beta:10GB/s;"
                                  "gamma:20GiB/s;ports:all;pulled:yes",
                                  "box=4,gpu=8");
    cr_expect_eq(b.dim[0].alpha, 7e-6);
    cr_expect_eq(b.dim[0].beta, 40e-9 / 1024);
    cr_expect_eq(b.dim[0].gamma, 0.0);
    cr_expect_eq(b.dim[0].ports, 1);
    cr_expect_not(b.dim[0].pulled);
    cr_expect_eq(b.dim[1].alpha, 3e-7);
    cr_expect_eq(b.dim[1].beta, 1e-10);
    cr_expect_eq(b.dim[1].gamma, 1 / (20 * 0x1p30));
    cr_expect_eq(b.dim[1].ports, MC_PORTS_ALL);
    cr_expect(b.dim[1].pulled);

    cr_expect_eq(b.dim[0].gap, 7e-6, "alpha, where nothing else is known");
    const mc_links_t g = links_of("uniform,box=gap:20ns,gpu=alpha:4us", "box=4,gpu=8");
    cr_expect_eq(g.dim[0].alpha, 1e-6);
    cr_expect_eq(g.dim[0].gap, 20e-9);
    cr_expect_eq(g.dim[1].gap, 4e-6);

    const mc_links_t c = links_of("lab,box=beta:1Gbit/s;alpha:0", "box=4,gpu=8");
    cr_expect_eq(c.dim[0].beta, 8e-9);
    cr_expect_eq(c.dim[0].alpha, 0.0);
    cr_expect(same(&c.dim[1], preset("lab-shm")));
}

Test(link, a_dimension_of_one_needs_no_link)
{
    const mc_links_t links = links_of("gpu=shm", "box=1,gpu=8");
    cr_expect_eq(links.ndims, 2);
    cr_expect(same(&links.dim[1], preset("shm")));
}

Test(link, print_reads_back_as_the_same_numbers)
{
    static const char *const text[] = {
        "lab",
        "generic",
        "dgx-h100",
        "pcie-boxes",
        "tpu-v4",
        "box=alpha:1.23456789us;beta:0.333ns/B,gpu=alpha:3s;beta:7ps/TiB;gamma:1B/s;ports:3",
        "uniform,box=alpha:0;beta:0;gamma:0",
        "uniform,gpu=alpha:5us;gap:1.5us",
        "uniform,gpu=gap:0",
        "uniform,box=call:4.5us,gpu=call:1.23456789ms",
        "dgx-h100,gpu=call:0",
        "uniform,box=cpu:3.4us;burst:13KiB;window:384KiB,gpu=cpu:300ns;eager:32KiB",
        "uniform,box=wire:gpu",
        "lab,box=wire:own",
    };
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    for (size_t i = 0; i < MC_COUNT(text); i++) {
        char buffer[512];
        mc_text_t printed = mc_text(buffer, sizeof buffer);
        const mc_links_t links = links_of(text[i], "box=4,gpu=8");
        mc_links_print(&links, &mesh, &printed);
        const mc_links_t again = links_of(buffer, "box=4,gpu=8");
        for (int32_t d = 0; d < 2; d++)
            cr_expect(same(&links.dim[d], &again.dim[d]) &&
                          links.dim[d].wire == again.dim[d].wire &&
                          same_correction(&links.correction[d], &again.correction[d]),
                      "%s as %s", text[i], buffer);
    }
}

Test(link, print_is_for_people)
{
    char buffer[512];
    mc_text_t printed = mc_text(buffer, sizeof buffer);
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    const mc_links_t links = links_of("box=lab-net,gpu=nvlink4", "box=4,gpu=8");
    mc_links_print(&links, &mesh, &printed);
    cr_expect_str_eq(
        buffer,
        "box=alpha:7us;beta:25MB/s;gamma:1GB/s;ports:1;pulled:no,"
        "gpu=alpha:1.9us;gap:600ns;beta:370GB/s;gamma:0.9ps/B;call:4.5us;ports:all;pulled:yes",
        "%s", buffer);
}

Test(link, errors_say_what_would_do)
{
    expect_error("labb", "did you mean lab?");
    expect_error("cluster", "generic, lab");
    expect_error("box=lab", "there are lab-net, lab-shm");
    expect_error("box=nvlink4", "dimension gpu needs a preset");
    expect_error("box=shm,gpu=alpha:1us", "dimension gpu needs a preset, or alpha and beta");
    expect_error("lab,rack=shm", "box=4,gpu=8 does not have");
    expect_error("lab,box=shm,box=shm", "two links");
    expect_error("box=shm,lab", "got 'lab'");
    expect_error("lab,box=alpha:7", "a time as in 7us");
    expect_error("lab,box=alpha:-1us", "a time as in 7us");
    expect_error("lab,box=alpha:us", "a time as in 7us");
    expect_error("lab,box=beta:40ns", "25GB/s or 200Mbit/s");
    expect_error("lab,box=beta:0GB/s", "25GB/s or 200Mbit/s");
    expect_error("lab,box=beta:1e999GB/s", "25GB/s");
    expect_error("lab,box=beta:1e305s/B",
                 "beta of a link is 0, or from 1e-30 to 1000 seconds a byte; "
                 "got '1e305s/B'");
    expect_error("lab,box=beta:1e300TB/s", "from 1e-30 to 1000");
    expect_error("lab,box=alpha:1e7s", "alpha of a link is 0, or from 1e-30 to 1e+06 seconds");
    expect_error("lab,box=alpha:1e-320ps", "from 1e-30");
    expect_error("lab,box=call:4.5", "call of a link is a time as in 7us");
    expect_error("lab,box=call:1e7s", "call of a link is 0, or from 1e-30 to 1e+06 seconds");
    expect_error("lab,box=burst:1e19B", "burst of a link is 0, or from 0.125 to 9.22337e+18 bytes");
    expect_error("lab,box=incast:0.5", "incast is no longer a field of a link");
    expect_error("lab,box=header:66B", "leave it out, or run meshcoll tune again");
    expect_error("lab,box=ports:0", "from 1 on, or all");
    expect_error("lab,box=ports:1.5", "from 1 on, or all");
    expect_error("lab,box=pulled:maybe", "yes or no");
    expect_error("lab,box=speed:3", "no 'speed'");
    expect_error("lab,box=ports:2;shm", "FIELD:VALUE");
    expect_error("lab,box=", "no link preset ''");
    expect_error("lab,,", "DIMENSION=LINK");
}

Test(link, check_refuses_what_no_formula_takes)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    mc_links_t links = links_of("lab", "box=4,gpu=8");
    links.dim[1].ports = 0;
    cr_expect_eq(mc_links_check(&links, &mesh), MESHCOLL_ERR_INVALID_ARG);
    links.dim[1].ports = 1;
    links.dim[0].beta = -1;
    cr_expect_eq(mc_links_check(&links, &mesh), MESHCOLL_ERR_INVALID_ARG);
    links.dim[0].beta = 1;
    links.ndims = 1;
    cr_expect_eq(mc_links_check(&links, &mesh), MESHCOLL_ERR_INVALID_ARG);
}

/* Beyond the box everything goes through its NIC, unless somebody knows better. */
Test(link, what_is_outside_of_a_box_shares_its_wire)
{
    const char *const mesh = "row=2,rack=2,box=4,gpu=8";
    const mc_links_t lab = links_of("lab", mesh), own = links_of("lab,rack=lab-net;wire:own", mesh);
    const int32_t wires[] = {2, 2, 2, 3}, apart[] = {2, 1, 2, 3};
    for (int32_t d = 0; d < 4; d++) {
        cr_expect_eq(mc_links_wire(&lab, d), wires[d], "%d", d);
        cr_expect_eq(mc_links_wire(&own, d), apart[d], "%d", d);
    }
    mc_links_t grid = links_of("uniform", "x=2,y=2,z=2"), torus = links_of("tpu-v4", "x=2,y=2,z=2");
    cr_expect_eq(mc_links_wire(&grid, 0), 0);
    mc_links_share_wire(&grid, 1);
    mc_links_share_wire(&torus, 1);
    cr_expect_eq(mc_links_wire(&grid, 0), 1);
    cr_expect_eq(mc_links_wire(&torus, 0), 0, "each has its own");
    grid.dim[1].wire = 3;
    const mc_mesh_t xyz = mesh_of("x=2,y=2,z=2");
    cr_expect_lt(mc_links_check(&grid, &xyz), 0, "shares one that is shared");
    expect_error("lab,gpu=wire:box", "an inner dimension");
    expect_error("lab,gpu=wire:rack", "own, or the dimension");
}

/* What it holds in two round trips, and never less than what a slow one may have on the way. */
Test(link, a_window_follows_from_alpha_and_beta_where_none_is_given)
{
    const mc_mesh_t mesh = mesh_of("box=4,gpu=8");
    const mc_links_t fast = links_of("ethernet-25g,box=alpha:25us;beta:100Gbit/s", "box=4,gpu=8");
    const mc_links_t slow = links_of("ethernet-10g", "box=4,gpu=8");
    const mc_links_t given = links_of("ethernet-10g,box=window:64KiB;ports:2", "box=4,gpu=8");
    const mc_links_t lab = links_of("lab", "box=4,gpu=8");
    cr_expect_float_eq(mc_link_window(&fast, 0), 2 * 625e3, 1);
    cr_expect_eq(mc_link_window(&slow, 0), MC_LINK_WINDOW);
    cr_expect_eq(mc_link_window(&lab, 0), MC_LINK_WINDOW);
    cr_expect_eq(mc_link_window(&given, 0), 65536);
    cr_expect_eq(mc_links_window(&given, &mesh, 0), 2 * 65536, "of both ports");
    cr_expect_eq(mc_link_window(&(mc_links_t){.ndims = 1, .dim = {{.alpha = 1}}}, 0),
                 MC_LINK_WINDOW, "beta is 0");
}

Test(link, sizes_have_units)
{
    expect_error("uniform,box=burst:8", "a size as in 64KiB");
    expect_error("uniform,box=window:8", "a size as in 64KiB");
}
