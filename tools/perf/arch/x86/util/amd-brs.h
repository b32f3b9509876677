/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _X86_AMD_BRS_H
#define _X86_AMD_BRS_H

#include <stdbool.h>
#include <stddef.h>

struct evsel;
struct perf_event_attr;

bool amd_brs__usable(void);
void amd_brs__config(struct perf_event_attr *attr);
int amd_brs__open_strerror(struct evsel *evsel, char *msg, size_t size);
int amd_brs__missing_strerror(char *msg, size_t size);

#endif /* _X86_AMD_BRS_H */
