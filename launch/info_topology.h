/* What `akin info --topology` and `akin info --xml` show. */
#ifndef AKIN_LAUNCH_INFO_TOPOLOGY_H
#define AKIN_LAUNCH_INFO_TOPOLOGY_H

/** Print the NUMA nodes, GPUs and NICs of this machine, or with a path of the
 * machine in that hwloc XML, as tables or as JSON. Gives the exit code. */
int akini_info_topology(const char *path, int as_json);

/** Print this machine as hwloc XML. Gives the exit code. */
int akini_info_xml(void);

#endif
