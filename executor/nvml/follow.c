//go:build cuda && linux && cgo

#define _GNU_SOURCE
#include "library.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { READINGS = 256 };

struct Follower {
	pthread_t thread;
	pthread_mutex_t lock;
	int stop, code;
	unsigned count, filled;
	long long every, when[READINGS];
	unsigned long long *used; // count of each reading
	void *devices[];
};

static long long now(void) {
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

// keep puts a reading behind the others. Where nobody takes them the last has the most
// of all that would have followed: no peak is lost.
static void keep(Follower *follower, long long when, const unsigned long long *used) {
	if (follower->filled == READINGS) {
		unsigned long long *last = follower->used + (READINGS - 1) * (size_t)follower->count;
		for (unsigned i = 0; i < follower->count; i++)
			if (used[i] > last[i]) last[i] = used[i];
		follower->when[READINGS - 1] = when;
		return;
	}
	memcpy(follower->used + follower->filled * (size_t)follower->count, used, follower->count * sizeof *used);
	follower->when[follower->filled++] = when;
}

static void *follow(void *of) {
	Follower *follower = of;
	unsigned long long *used = follower->used + READINGS * (size_t)follower->count; // room for one more
	long long begin = now(), next = begin;
	for (;;) {
		int code = 0;
		for (unsigned i = 0; i < follower->count && !code; i++) {
			Memory memory = {0};
			code = call_memory(follower->devices[i], &memory);
			used[i] = memory.used;
		}
		pthread_mutex_lock(&follower->lock);
		if (!(follower->code = code)) keep(follower, now() - begin, used);
		int ended = follower->stop || code;
		pthread_mutex_unlock(&follower->lock);
		if (ended) return 0;
		next += follower->every;
		if (next < now()) next = now(); // it was stopped, or the driver is slow
		struct timespec until = {next / 1000000000, next % 1000000000};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0) == EINTR) {}
	}
}

Follower *follow_begin(void **devices, unsigned count, long long every) {
	Follower *follower = calloc(1, sizeof *follower + count * sizeof *devices);
	if (!follower) return 0;
	follower->used = calloc((READINGS + 1) * (size_t)count + 1, sizeof *follower->used);
	follower->count = count, follower->every = every;
	memcpy(follower->devices, devices, count * sizeof *devices);
	pthread_mutex_init(&follower->lock, 0);
	if (!follower->used || pthread_create(&follower->thread, 0, follow, follower)) {
		free(follower->used);
		free(follower);
		return 0;
	}
	return follower;
}

int follow_take(Follower *follower, long long *when, unsigned long long *used, unsigned most, int *code) {
	pthread_mutex_lock(&follower->lock);
	unsigned taken = follower->filled < most ? follower->filled : most;
	memcpy(when, follower->when, taken * sizeof *when);
	memcpy(used, follower->used, taken * (size_t)follower->count * sizeof *used);
	follower->filled -= taken;
	memmove(follower->when, follower->when + taken, follower->filled * sizeof *when);
	memmove(follower->used, follower->used + taken * (size_t)follower->count, follower->filled * (size_t)follower->count * sizeof *used);
	*code = follower->code;
	pthread_mutex_unlock(&follower->lock);
	return *code && !taken ? -1 : (int)taken;
}

void follow_end(Follower *follower) {
	pthread_mutex_lock(&follower->lock);
	follower->stop = 1;
	pthread_mutex_unlock(&follower->lock);
	pthread_join(follower->thread, 0);
	free(follower->used);
	free(follower);
}
