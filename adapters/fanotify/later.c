// SPDX-License-Identifier: Apache-2.0
/* Threads that set what may take long; the program waits for them, the agent does not. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include "agent.h"

#define THREADS 4
#define WAITING 64

struct work {
	struct tag_slot slot;
	int fd;
	pid_t process;
};

static struct work *queue[WAITING];
static unsigned int first, count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct hinter *hinter;

static struct work *take(void)
{
	pthread_mutex_lock(&lock);
	while (!count)
		pthread_cond_wait(&more, &lock);
	struct work *work = queue[first];

	first = (first + 1) % WAITING;
	count--;
	pthread_mutex_unlock(&lock);
	return work;
}

static void *work_on(void *unused)
{
	(void)unused;
	for (;;) {
		struct work *work = take();

		hinter_set(hinter, &work->slot, work->fd, (uint32_t)work->process);
		answer(work->fd);
		free(work);
	}
	return NULL;
}

/* Signals are for the main thread: they would cut settings short. */
bool begin_later(struct hinter *h)
{
	sigset_t all, before;
	bool done = true;

	hinter = h;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		done = done && !pthread_create(&thread, NULL, work_on, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return done;
}

bool set_later(const struct tag_slot *slot, int fd, pid_t process)
{
	struct work *work = malloc(sizeof(*work));
	bool room = false;

	if (!work)
		return false;
	work->slot = *slot;
	work->slot.name = work->slot.path + (slot->name - slot->path);
	work->fd = fd;
	work->process = process;
	pthread_mutex_lock(&lock);
	if (count < WAITING) {
		queue[(first + count++) % WAITING] = work;
		room = true;
		pthread_cond_signal(&more);
	}
	pthread_mutex_unlock(&lock);
	if (!room)
		free(work);
	return room;
}
