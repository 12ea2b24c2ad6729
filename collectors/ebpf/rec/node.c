// SPDX-License-Identifier: Apache-2.0
/*
 * One recorder for all tasks of a user on a node. Tasks connect to a socket and are followed from
 * their next system call on. The kernel identifies them (SO_PEERCRED), not their message. Each
 * connection is answered with one byte. The lock keeps a recorder from ending while a task is about
 * to connect.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "rec.h"

#define PATIENCE_MS 1000 /* for the request of a connected task of our own user */
#define BUSY_POLL_MS 20
#define JOIN 'j'
#define STOP 's'
#define FOLLOWED 'y'
#define REFUSED 'n'

int node_check(const struct options *o)
{
	int listening = 0;
	socklen_t size = sizeof(listening);

	if (getsockopt(o->listen, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size))
		return -errno;
	return listening && fcntl(o->lock, F_GETFD) >= 0 ? 0 : -EBADF;
}

/* Request following of the connected process. */
static char request_following(pid_t pid)
{
	if (pid <= 0 || tracer_want_pid((unsigned int)pid))
		return REFUSED; /* not in our pid namespace, or no free entry */
	return FOLLOWED;
}

/* Serve one connection; true if it asks to stop. */
static bool serve(int connection)
{
	struct ucred peer = {};
	socklen_t size = sizeof(peer);
	struct pollfd wait = {.fd = connection, .events = POLLIN};
	char wish = 0, answer = REFUSED;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.uid != geteuid())
		return false;
	if (poll(&wait, 1, PATIENCE_MS) != 1 || recv(connection, &wish, 1, MSG_DONTWAIT) != 1)
		return false;
	if (wish == JOIN)
		answer = request_following(peer.pid);
	else if (wish == STOP)
		answer = FOLLOWED;
	if (send(connection, &answer, 1, MSG_NOSIGNAL) != 1 && answer == FOLLOWED && wish == JOIN)
		tracer_unwant_pid((unsigned int)peer.pid); /* gone meanwhile */
	return wish == STOP;
}

static bool accept_all(const struct options *o)
{
	bool stop = false;
	int connection;

	while ((connection = accept4(o->listen, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		stop |= serve(connection);
		close(connection);
	}
	return stop;
}

/* Refuse further connections; as other processes have the socket open, closing is not enough. */
static void hang_up(const struct options *o)
{
	int connection;

	shutdown(o->listen, SHUT_RDWR);
	while ((connection = accept4(o->listen, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(connection);
	close(o->listen);
}

/* End if no process is followed or about to connect; later tasks start another recorder. */
static bool may_end(const struct options *o)
{
	struct pollfd more = {.fd = o->listen, .events = POLLIN};
	bool end = false;

	if (flock(o->lock, LOCK_EX | LOCK_NB))
		return false;
	if (poll(&more, 1, 0) == 0 && !tracer_live() && !follow_any_wanted()) {
		hang_up(o);
		end = true;
	}
	flock(o->lock, LOCK_UN);
	return end;
}

/* Report readiness, serve, and return when the recorder must end. */
void node_serve(const struct options *o, int signals)
{
	struct pollfd fds[] = {
		{.fd = tracer_epoll_fd(), .events = POLLIN},
		{.fd = signals, .events = POLLIN},
		{.fd = o->listen, .events = POLLIN},
	};
	unsigned long long now = clock_ns(CLOCK_MONOTONIC), busy = now;

	if (o->ready >= 0 && write(o->ready, "r", 1) == 1)
		close(o->ready);
	fcntl(o->listen, F_SETFL, O_NONBLOCK);
	for (;;) {
		bool stop;

		poll(fds, 3, busy == now ? BUSY_POLL_MS : 100);
		stop = accept_all(o);
		/* the batch system may kill us at the end of a job: write it out first */
		if (tracer_consume() > 0)
			collect_flush();
		now = clock_ns(CLOCK_MONOTONIC);
		collect_tick(now);
		if (stop || follow_asked_to_stop(signals)) {
			hang_up(o);
			return;
		}
		if (tracer_live() || follow_any_wanted())
			busy = now;
		if (o->idle_ms && now - busy >= o->idle_ms * 1000000ULL && may_end(o))
			return;
	}
}
