/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_SAMPLE_LOSS_H
#define __PERF_SAMPLE_LOSS_H

#include <stdbool.h>

struct evlist;
struct evsel;
struct perf_sample;
struct sample_loss;
union perf_event;

struct sample_loss *sample_loss__new(struct evlist *evlist);
void sample_loss__delete(struct sample_loss *loss);

void sample_loss__read_counts(struct sample_loss *loss, struct evlist *evlist, bool per_cpu);
void sample_loss__start_samples(struct sample_loss *loss);
void sample_loss__add_sample(struct sample_loss *loss, struct perf_sample *sample);
void sample_loss__add_throttle(struct sample_loss *loss, struct evlist *evlist,
			       union perf_event *event);
void sample_loss__warn(struct sample_loss *loss, struct evlist *evlist);

const char *arch_evsel__sharing_hint(struct evsel *evsel);

#endif /* __PERF_SAMPLE_LOSS_H */
