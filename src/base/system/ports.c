#include "base/system/ports.h"

#include <ctype.h>
#include <stdlib.h>

enum { MOST = 65535 };

int mc_ports_read(mc_ports_t *ports)
{
    const char *const text = getenv("MESHCOLL_PORTS");
    if (!text || !*text) {
        *ports = (mc_ports_t){0, 0};
        return MESHCOLL_OK;
    }
    char *end, *rest = NULL;
    const long first = strtol(text, &end, 10);
    const long last =
        *end == '-' && isdigit((unsigned char)end[1]) ? strtol(end + 1, &rest, 10) : 0;
    if (!isdigit((unsigned char)*text) || !rest || *rest || first < 1 || last > MOST ||
        last - first < MC_PORTS_LEAST - 1)
        return mc_fail(MESHCOLL_ERR_INVALID_ARG,
                       "MESHCOLL_PORTS is a range of at least %d ports, as in 40000-40199, up to "
                       "%d; got '%s'",
                       MC_PORTS_LEAST, MOST, text);
    *ports = (mc_ports_t){(uint16_t)(first + MC_PORTS_MEET), (uint16_t)last};
    return MESHCOLL_OK;
}
