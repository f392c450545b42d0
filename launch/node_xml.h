/* Node XML: what is looked at in hwloc's XML before hwloc reads it. */
#ifndef AKIN_LAUNCH_NODE_XML_H
#define AKIN_LAUNCH_NODE_XML_H

#include "base/error.h"

#include <stddef.h>

/* More than any machine has, and little enough to be read at once. */
enum { AKINI_NODE_XML_BYTES = 16 << 20 };

/**
 * Read a file of at most AKINI_NODE_XML_BYTES.
 *
 * \param[out] text_p  malloc'ed; free().
 * \return AKIN_OK, AKIN_ERR_NOT_FOUND, AKIN_ERR_IO, AKIN_ERR_FORMAT,
 *         AKIN_ERR_NOMEM
 */
akin_status_t akini_node_xml_load(const char *path, char **text_p,
                                  size_t *bytes_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Check that a text is XML of hwloc 2 whose tags are closed and not nested
 * deeper than hwloc's recursion bears.
 *
 * \param[out] xml_p    the topology element, comments left out, which hwloc's
 *                      own small parser does not know; NUL-terminated; free().
 * \param[out] bytes_p  the NUL included.
 * \return AKIN_OK, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM
 */
akin_status_t akini_node_xml_check(const char *text, size_t bytes,
                                   const char *origin, char **xml_p,
                                   size_t *bytes_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

#endif
