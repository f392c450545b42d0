/* Keep plug-ins: Open MPI unloads its plug-ins before the leak check, which
 * then cannot name their frames for suppression. Linked into Asan builds only.
 */
#include <dlfcn.h>

int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
