/*
 * capture.h: which captures are active.
 *
 * In: the hooks of stream capture. Out: moment records, and finished graphs for graphs.h. What can fail: the driver does
 * not tell about an active capture; a fault record says so.
 */
#ifndef MEDUSA_CAPTURE_H
#define MEDUSA_CAPTURE_H

#include <stdbool.h>

/* Whether any stream of the process is being captured. */
bool capture_active(void);
/* Before a free, and with an allocation: records which nodes the capturing graphs hold. Nothing outside captures. */
void capture_moment(void);

#endif
