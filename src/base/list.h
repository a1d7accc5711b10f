/* Lists through their elements: a node is in one list at most, and leaves it in constant time. Zeros are an empty
 * list, and a node that is in none. */
#ifndef MC_BASE_LIST_H
#define MC_BASE_LIST_H

#include <stddef.h>

typedef struct mc_list mc_list_t;
typedef struct mc_list_node {
    struct mc_list_node *next, *before;
    mc_list_t *in; /* NULL: in none */
} mc_list_node_t;
struct mc_list {
    mc_list_node_t *first, *last;
};

/* Behind `before`, which is in the list; NULL: as its first. */
static inline void mc_list_insert(mc_list_t *list, mc_list_node_t *before, mc_list_node_t *n)
{
    n->before = before;
    n->next = before ? before->next : list->first;
    n->in = list;
    *(before ? &before->next : &list->first) = n;
    *(n->next ? &n->next->before : &list->last) = n;
}
static inline void mc_list_append(mc_list_t *list, mc_list_node_t *n)
{
    n->next = NULL;
    n->before = list->last;
    n->in = list;
    *(list->last ? &list->last->next : &list->first) = n;
    list->last = n;
}
/* Out of the list that it is in, if any. */
static inline void mc_list_remove(mc_list_node_t *n)
{
    if (!n->in)
        return;
    *(n->before ? &n->before->next : &n->in->first) = n->next;
    *(n->next ? &n->next->before : &n->in->last) = n->before;
    n->in = NULL;
}
/* Moves a node to the end of this list, unless it is in it already. */
static inline void mc_list_move(mc_list_t *list, mc_list_node_t *n)
{
    if (n->in == list)
        return;
    if (n->in)
        mc_list_remove(n);
    mc_list_append(list, n);
}

#endif
