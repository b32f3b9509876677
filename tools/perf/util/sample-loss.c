// SPDX-License-Identifier: GPL-2.0
/*
 * Warn about samples that are missing from a recording, because the kernel
 * throttled the event, because other events used the event's counter, or because
 * the period was longer than the run of the program.
 */
#include <stdlib.h>
#include <api/fs/fs.h>
#include <internal/xyarray.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <perf/event.h>
#include "util/branch.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/hashmap.h"
#include "util/sample.h"
#include "util/sample-loss.h"

/* Do not warn about an event that lost less than this fraction of its time. */
#define WORTH_A_WARNING	0.01

struct event_loss {
	/*
	 * the kernel's counts when the recording ends; the times are 0 if
	 * read_format lacks them
	 */
	unsigned long long count;
	unsigned long long enabled;
	unsigned long long running;
	unsigned long long lost;
	/* numbers and throttled time, summed up from the records in the perf.data file */
	unsigned long long samples;
	unsigned long long with_branches;
	unsigned long long throttles;
	unsigned long long throttled_time;
};

struct sample_loss {
	bool samples_were_read;
	/* the time at which the kernel throttled each event, by the event's stream ID */
	struct hashmap *throttled_since;
	int nr_events;
	struct event_loss events[];
};

static size_t hash_id(long id, void *ctx __maybe_unused)
{
	return id;
}

static bool equal_ids(long id1, long id2, void *ctx __maybe_unused)
{
	return id1 == id2;
}

struct sample_loss *sample_loss__new(struct evlist *evlist)
{
	int nr_events = evlist__nr_entries(evlist);
	struct sample_loss *loss;

	loss = zalloc(sizeof(*loss) + nr_events * sizeof(loss->events[0]));
	if (!loss)
		return NULL;

	loss->nr_events = nr_events;
	loss->throttled_since = hashmap__new(hash_id, equal_ids, NULL);
	if (IS_ERR_OR_NULL(loss->throttled_since))
		zfree(&loss);
	return loss;
}

static void free_since(struct hashmap *since)
{
	struct hashmap_entry *entry;
	size_t bucket;

	hashmap__for_each_entry(since, entry, bucket)
		free(entry->pvalue);
	hashmap__free(since);
}

void sample_loss__delete(struct sample_loss *loss)
{
	if (!loss)
		return;
	free_since(loss->throttled_since);
	free(loss);
}

/* Return the counts of an event, NULL for an event that was added later. */
static struct event_loss *event_loss(struct sample_loss *loss, struct evsel *evsel)
{
	return evsel && evsel->core.idx < loss->nr_events ? &loss->events[evsel->core.idx] : NULL;
}

/**
 * sample_loss__read_counts - read the counts and times of the events
 * @loss: the object that stores the counts
 * @evlist: the events, still open
 * @per_cpu: the events belong to CPUs, not to tasks
 *
 * perf opens the event of a task once for each CPU, and each of these events is
 * enabled while the task runs on any CPU.  So the longest of the enabled times is
 * the time of the task.
 */
void sample_loss__read_counts(struct sample_loss *loss, struct evlist *evlist, bool per_cpu)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		struct event_loss *event = event_loss(loss, evsel);
		struct xyarray *fds = evsel->core.fd;

		if (!event || !fds)
			continue;

		for (int thread = 0; thread < xyarray__max_y(fds); thread++) {
			u64 longest = 0;

			for (int cpu = 0; cpu < xyarray__max_x(fds); cpu++) {
				struct perf_counts_values now;

				if (perf_evsel__read(&evsel->core, cpu, thread, &now))
					continue;
				event->count += now.val;
				event->running += now.run;
				event->lost += now.lost;
				if (per_cpu)
					event->enabled += now.ena;
				else
					longest = max(longest, now.ena);
			}
			event->enabled += longest;
		}
	}
}

/**
 * sample_loss__start_samples - announce that the recording's samples will be read
 * @loss: the object that counts the samples
 *
 * Without this call, sample_loss__warn() cannot know whether an event has no
 * samples or nobody has read the samples, and so does not warn about missing
 * samples.
 */
void sample_loss__start_samples(struct sample_loss *loss)
{
	loss->samples_were_read = true;
}

void sample_loss__add_sample(struct sample_loss *loss, struct perf_sample *sample)
{
	struct event_loss *event = event_loss(loss, sample->evsel);

	if (!event)
		return;
	event->samples++;
	if (sample->branch_stack && sample->branch_stack->nr)
		event->with_branches++;
}

/**
 * sample_loss__add_throttle - count a throttling record
 * @loss: the object that stores the throttled times
 * @evlist: the events
 * @record: PERF_RECORD_THROTTLE or PERF_RECORD_UNTHROTTLE
 */
void sample_loss__add_throttle(struct sample_loss *loss, struct evlist *evlist,
			       union perf_event *record)
{
	struct event_loss *event = event_loss(loss, evlist__id2evsel(evlist, record->throttle.id));
	long stream = record->throttle.stream_id;
	u64 *since;

	if (!event)
		return;

	if (record->header.type == PERF_RECORD_THROTTLE) {
		event->throttles++;
		if (hashmap__find(loss->throttled_since, stream, &since))
			return;
		since = malloc(sizeof(*since));
		if (!since)
			return;
		*since = record->throttle.time;
		if (hashmap__add(loss->throttled_since, stream, since))
			free(since);
	} else if (hashmap__delete(loss->throttled_since, stream, NULL, &since)) {
		if (record->throttle.time > *since)
			event->throttled_time += record->throttle.time - *since;
		free(since);
	}
}

/*
 * Return advice for an event that shares its counter with other events and can use
 * only one counter, NULL for an event that can use several counters.
 */
const char * __weak arch_evsel__sharing_hint(struct evsel *evsel __maybe_unused)
{
	return NULL;
}

static void warn_of_throttling(struct evsel *evsel, const struct event_loss *event)
{
	u64 stopped = min(event->throttled_time, event->running);
	char missing[64] = "";
	int rate = -1;

	if (!event->throttles)
		return;
	if (event->running) {
		/* assume the same sample rate as in the time without throttling */
		double nr = (double)event->samples * stopped / (event->running - stopped + 1);

		if (stopped < event->running * WORTH_A_WARNING || nr < 1)
			return;
		scnprintf(missing, sizeof(missing), ", at least %.0f samples are missing", nr);
	}

	sysctl__read_int("kernel/perf_event_max_sample_rate", &rate);
	pr_warning("WARNING: %s: throttled %llu times", evsel__name(evsel), event->throttles);
	if (event->running)
		pr_warning(", for %.0f%% of its time", stopped * 100.0 / event->running);
	pr_warning("%s.\n"
		   "Use a longer period with -c, or raise kernel.perf_event_max_sample_rate (now %d).\n",
		   missing, rate);
}

static void warn_of_sharing(struct evsel *evsel, const struct event_loss *event)
{
	const char *hint = arch_evsel__sharing_hint(evsel);

	if (!event->enabled || event->running >= event->enabled * (1 - WORTH_A_WARNING))
		return;

	if (event->running)
		pr_warning("WARNING: %s: counted for %.0f%% of its time only, others had its counter.\n",
			   evsel__name(evsel), event->running * 100.0 / event->enabled);
	else
		pr_warning("WARNING: %s: never counted, other events had its counter.\n",
			   evsel__name(evsel));
	pr_warning("%s\n", hint ?: "Record fewer events at a time.");
}

static void warn_of_lost_samples(struct evsel *evsel, const struct event_loss *event)
{
	if (!event->lost)
		return;
	pr_warning("WARNING: %s: %llu samples were lost, perf could not write that fast.\n"
		   "Use a longer period with -c, or a larger buffer with -m.\n",
		   evsel__name(evsel), event->lost);
}

static void warn_of_no_samples(struct evsel *evsel, const struct event_loss *event)
{
	struct perf_event_attr *attr = &evsel->core.attr;

	if (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK))
		return;
	if (event->samples) {
		if (!event->with_branches)
			pr_warning("WARNING: %s: %llu samples, all without branches.\n"
				   "Use a wider filter with -j, or -b for all branches.\n",
				   evsel__name(evsel), event->samples);
		return;
	}
	/*
	 * do not warn about an event with a frequency, which has no fixed period, nor
	 * twice about lost samples or about an event that never had a counter
	 */
	if (attr->freq || event->lost || (event->enabled && !event->running))
		return;

	if (!event->count)
		pr_warning("WARNING: %s: no samples, the event did not happen.\n",
			   evsel__name(evsel));
	else if (event->count < attr->sample_period)
		pr_warning("WARNING: %s: no samples, %llu events are less than the period %llu.\n"
			   "Use a shorter period with -c, or run the program for longer.\n",
			   evsel__name(evsel), event->count, attr->sample_period);
	else
		pr_warning("WARNING: %s: no samples of %llu events.\n",
			   evsel__name(evsel), event->count);
}

/**
 * sample_loss__warn - print which samples are missing, why, and what to change
 * @loss: the counts and times of the recording
 * @evlist: the events
 */
void sample_loss__warn(struct sample_loss *loss, struct evlist *evlist)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		struct event_loss *event = event_loss(loss, evsel);

		if (!event || !evsel->core.attr.sample_period)
			continue;
		warn_of_sharing(evsel, event);
		warn_of_lost_samples(evsel, event);
		if (loss->samples_were_read) {
			warn_of_throttling(evsel, event);
			warn_of_no_samples(evsel, event);
		}
	}
}
