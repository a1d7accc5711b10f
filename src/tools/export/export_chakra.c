/*
 * Chakra execution traces (mlcommons/chakra): length-delimited protobuf, metadata first, then a node for each message and
 * each sum. Attributes have the types that Chakra's feeder reads. Step i of a rank is node 2i + 1, and the sum of
 * what it receives node 2i + 2.
 */
#include "tools/export/export.h"

#ifdef MESHCOLL_HAVE_CHAKRA
#include "tools/common/show.h"

#include <assert.h>
#include <chakra.pb-c.h>
#include <math.h>
#include <stdlib.h>

typedef ChakraProtoMsg__AttributeProto attribute_t;
typedef ChakraProtoMsg__Node node_t;

/* protobuf-c's members are not const; it writes none of them. */
#define ATTRIBUTE(name_, kind, member, value_)                                                  \
    {                                                                                           \
        .base = PROTOBUF_C_MESSAGE_INIT(&chakra_proto_msg__attribute_proto__descriptor),        \
        .name = (char *)(name_),                                                                \
        .value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_##kind##_VAL, .member = (value_) \
    }

enum { MOST_ATTRIBUTES = 5 };

/* The size as a varint, then the message. */
static int put_message(const ProtobufCMessage *message, FILE *out)
{
    uint8_t head[10];
    const size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *const packed = malloc(bytes);
    size_t n = 0;
    if (!packed)
        return mc_fail_memory("a node");
    protobuf_c_message_pack(message, packed);
    for (size_t rest = bytes; n == 0 || rest > 0; rest >>= 7)
        head[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    fwrite(head, 1, n, out);
    fwrite(packed, 1, bytes, out);
    free(packed);
    return MESHCOLL_OK;
}

static int put_metadata(const mc_request_t *e, FILE *out)
{
    ChakraProtoMsg__GlobalMetadata metadata = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;
    attribute_t strategy =
        ATTRIBUTE("strategy", STRING, string_val, (char *)mc_show_strategy(&e->strategy, &e->mesh));
    attribute_t *attributes[] = {&strategy};
    metadata.version = (char *)"1.0.0";
    metadata.n_attr = MC_COUNT(attributes);
    metadata.attr = attributes;
    return put_message(&metadata.base, out);
}

static int put_node(node_t *node, attribute_t *attribute, size_t n, FILE *out)
{
    attribute_t *all[MOST_ATTRIBUTES];
    assert(n <= MOST_ATTRIBUTES);
    for (size_t i = 0; i < n; i++)
        all[i] = &attribute[i];
    node->attr = all;
    node->n_attr = n;
    return put_message(&node->base, out);
}

static int put_transfer(const mc_export_rank_t *r, uint32_t i, const mc_export_step_t *step,
                        node_t *node, FILE *out)
{
    const mc_step_t *const s = &r->plan->step[i];
    char name[64];
    attribute_t attributes[] = {
        ATTRIBUTE("is_cpu_op", BOOL, bool_val, false),
        ATTRIBUTE("comm_src", INT32, int32_val, step->sends ? r->plan->rank : s->peer),
        ATTRIBUTE("comm_dst", INT32, int32_val, step->sends ? s->peer : r->plan->rank),
        ATTRIBUTE("comm_tag", INT32, int32_val, (int32_t)s->seq),
        ATTRIBUTE("comm_size", INT64, int64_val, (int64_t)step->bytes),
    };
    snprintf(name, sizeof name, step->sends ? "send to %d" : "receive from %d", s->peer);
    node->name = name;
    node->type = step->sends ? CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE
                             : CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE;
    return put_node(node, attributes, MC_COUNT(attributes), out);
}

/* Microseconds are coarse: those who know the rate of sums have the operations, as float32, and the bytes. */
static int put_sum(const mc_export_step_t *step, node_t *node, FILE *out)
{
    const uint64_t bytes = step->sums ? step->bytes : 0;
    attribute_t attributes[] = {
        ATTRIBUTE("is_cpu_op", BOOL, bool_val, false),
        ATTRIBUTE("num_ops", INT64, int64_val, (int64_t)(bytes / sizeof(float))),
        ATTRIBUTE("tensor_size", UINT64, uint64_val, bytes),
    };
    node->name = (char *)(step->sums ? "sum" : "copy");
    node->type = CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE;
    node->duration_micros = (uint64_t)llround(1e6 * step->seconds);
    return put_node(node, attributes, MC_COUNT(attributes), out);
}

static int put_step(const mc_request_t *e, const mc_export_rank_t *r, uint32_t i, uint64_t *deps,
                    FILE *out)
{
    const mc_export_step_t step = mc_export_step(e, r, i);
    const bool message = step.sends || step.receives;
    node_t node = CHAKRA_PROTO_MSG__NODE__INIT;
    node.id = 2 * (uint64_t)i + 1;
    node.data_deps = deps;
    for (uint32_t k = r->off[i]; k < r->off[i + 1]; k++) {
        const mc_export_step_t before = mc_export_step(e, r, r->pred[k]);
        deps[node.n_data_deps++] =
            2 * (uint64_t)r->pred[k] + (before.receives && before.sums ? 2 : 1);
    }
    int status = message ? put_transfer(r, i, &step, &node, out) : put_sum(&step, &node, out);
    if (!status && message && step.sums) {
        node_t sum = CHAKRA_PROTO_MSG__NODE__INIT;
        sum.id = node.id + 1;
        sum.data_deps = &node.id;
        sum.n_data_deps = 1;
        status = put_sum(&step, &sum, out);
    }
    return status;
}

int mc_export_chakra(const mc_request_t *e, int32_t rank, FILE *out)
{
    mc_export_rank_t r;
    int status = mc_export_rank_open(e, rank, &r);
    if (status)
        return status;
    uint64_t *const deps = malloc((r.plan->n_edges + 1) * sizeof *deps);
    status = deps ? put_metadata(e, out) : mc_fail_memory("a trace");
    for (uint32_t i = 0; i < r.plan->n_steps && !status; i++)
        status = put_step(e, &r, i, deps, out);
    free(deps);
    mc_export_rank_close(&r);
    return status;
}

#else

int mc_export_chakra(const mc_request_t *e, int32_t rank, FILE *out)
{
    (void)e, (void)rank, (void)out;
    return mc_fail(MESHCOLL_ERR_UNSUPPORTED,
                   "this meshcoll was built without protobuf-c: install libprotobuf-c-dev and "
                   "protobuf-c-compiler, and build it again");
}

#endif
