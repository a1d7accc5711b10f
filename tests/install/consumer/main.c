#include <meshcoll/meshcoll.h>

#include <stdio.h>

int main(void)
{
    printf("%s %s\n", meshcoll_version(), meshcoll_status_string(MESHCOLL_OK));
    return 0;
}
