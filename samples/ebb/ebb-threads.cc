// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ebb-threads: event-based branches (EBB) in C++, in several threads.
 *
 * EBBs belong to a thread: each thread opens its own event and sets its own
 * handler. The two kinds of threads in this program use different handlers. The
 * handlers count in thread-local variables, which need no lock.
 */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#include "ebb.h"

/* The code of an event that counts instructions (0x02) on PMC1 */
static const unsigned long event_code = EBB_EVENT_PMC(1) | 0x02;
static const unsigned int short_period = 50000, long_period = 200000;

/* In a handler, these variables are the variables of the interrupted thread. */
static thread_local unsigned int period;
static thread_local unsigned long short_ebbs, long_ebbs;

static void rearm()
{
	ebb_set_period(1, period);
	ebb_rearm();
}

static void short_handler(ebb_regs *)
{
	short_ebbs++;
	rearm();
}

static void long_handler(ebb_regs *)
{
	long_ebbs++;
	rearm();
}

/* The current thread takes EBBs as long as an object of this class exists. */
class ebb_session {
public:
	ebb_session(ebb_handler_t *handler, unsigned int instructions)
		: fd(ebb_open(event_code, 0, -1))
	{
		if (fd < 0)
			throw std::system_error(errno, std::generic_category(),
						"the event was refused");
		if (ebb_start(fd)) {
			int error = errno;

			close(fd);
			throw std::system_error(error, std::generic_category(),
						"the event did not get the PMU");
		}
		period = instructions;
		ebb_enable(handler);
		rearm();
	}

	~ebb_session()
	{
		ebb_disable();
		close(fd);
	}

	ebb_session(const ebb_session &) = delete;
	ebb_session &operator=(const ebb_session &) = delete;

private:
	int fd;
};

/* Execute at least one instruction in each round */
static void work(unsigned long rounds)
{
	while (rounds--)
		asm volatile("nop");
}

struct result {
	unsigned long short_ebbs, long_ebbs;
	std::exception_ptr error;
};

static void run(ebb_handler_t *handler, unsigned int instructions, unsigned long rounds,
		result &result)
{
	try {
		ebb_session session(handler, instructions);

		work(rounds);
	} catch (...) {
		result.error = std::current_exception();
	}
	result.short_ebbs = short_ebbs;
	result.long_ebbs = long_ebbs;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 0) : 10000000;
	std::vector<result> results(4);
	std::vector<std::thread> threads;
	bool right = true;

	if (!ebb_available()) {
		std::fprintf(stderr, "no event-based branches on this machine\n");
		return 1;
	}
	for (size_t i = 0; i < results.size(); i++) {
		if (i % 2)
			threads.emplace_back(run, long_handler, long_period, rounds,
					     std::ref(results[i]));
		else
			threads.emplace_back(run, short_handler, short_period, rounds,
					     std::ref(results[i]));
	}
	for (std::thread &thread : threads)
		thread.join();

	for (size_t i = 0; i < results.size(); i++) {
		const result &result = results[i];
		unsigned long mine = i % 2 ? result.long_ebbs : result.short_ebbs;
		unsigned long others = i % 2 ? result.short_ebbs : result.long_ebbs;

		try {
			if (result.error)
				std::rethrow_exception(result.error);
		} catch (const std::exception &error) {
			std::fprintf(stderr, "thread %zu: %s\n", i, error.what());
			right = false;
		}
		std::printf("thread %zu: %lu short, %lu long\n", i, result.short_ebbs,
			    result.long_ebbs);
		if (others || mine < rounds / (i % 2 ? long_period : short_period))
			right = false;
	}
	if (!right)
		std::fprintf(stderr, "a thread did not get all EBBs, or got EBBs of the other handler\n");
	return !right;
}
