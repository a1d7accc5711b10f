/*
 * A ring of boxes laid over the network that joins them: how far it stretches, which links it loads, and a better order of
 * the same boxes. In a round of the ring each box sends to the one after it, from each of its ends to one there.
 */
#ifndef MC_NETWORK_OVERLAY_H
#define MC_NETWORK_OVERLAY_H

#include "network/network.h"

enum { MC_OVERLAY_BUSIEST = 5 };

/* Box i has the ends box[i].first … box[i].first + box[i].n - 1 of a fitted network. */
typedef struct {
    mc_network_t *network;
    int32_t n_boxes;
    struct {
        int32_t first, n;
    } * box;
} mc_ring_t;

typedef struct {
    double stretch; /* links a message takes, on average; those between an end and its leaf too */
    double load;    /* of the busiest link: messages of a round times seconds per byte */
    int32_t n_busiest;
    struct {
        uint32_t link, messages;
    } busiest[MC_OVERLAY_BUSIEST]; /* the links of the largest loads, the largest first */
} mc_overlay_t;

/* `order`: the boxes, each once. ERR_NO_MEMORY. */
int mc_overlay_measure(const mc_ring_t *ring, const int32_t *order, mc_overlay_t *overlay);

/*
 * Improves an order: first the largest load, then the stretch. It starts from the order given, or from one in which boxes
 * that are near each other follow each other, whichever is better: leaves one after the other, a torus back and forth, a
 * graph depth first. Then it reverses, shifts and swaps boxes where messages cross a busiest link or take many, and keeps
 * what is better (local search by 2-opt and or-opt moves: Croes 1958, Or 1976), up to a fixed amount of work. So the
 * largest load never rises, the stretch rises only where the load falls, and the result is the same on every machine.
 */
int mc_overlay_improve(const mc_ring_t *ring, int32_t *order);

#endif
