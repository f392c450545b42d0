/* What akin ctl asks of the router. */
#include "roles/router_state.h"

void akini_router_ctl_open(akin_router_t *r)
{
    (void)r;
}

int akini_router_ctl_turn(akin_router_t *r)
{
    (void)r;
    return 0;
}

void akini_router_ctl_close(akin_router_t *r)
{
    (void)r;
}
