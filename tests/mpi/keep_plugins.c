/* Keep plug-ins: Open MPI unloads its plug-ins before the leak check, which
 * then cannot name their frames for suppression. Linked into Asan builds only.
 */
#include <dlfcn.h>

/* Visible, because it has to take the place of the C library's. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
    (void)handle;
    return 0;
}
