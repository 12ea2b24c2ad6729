/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancel threads within system calls, in the directory "." with a file "data" of 8,192 bytes;
 * print each failed check, and exit with their number.
 */
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cxxabi.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ctime>
#include <unistd.h>

static int ends[2], failures;
static std::atomic<int> cleaned, destroyed, forced, returned;
static pthread_barrier_t ready;

static void check(bool right, const char *what, const char *detail = "")
{
	if (!right)
		std::printf("%s %s\n", what, detail), failures++;
}

/* Each call blocks until its thread is cancelled. */
static void block_read()
{
	char c;
	(void)!read(ends[0], &c, 1);
}
static void block_poll()
{
	struct pollfd p = {ends[0], POLLIN, 0};
	poll(&p, 1, -1);
}
static void block_sleep()
{
	struct timespec t = {100, 0};
	nanosleep(&t, nullptr);
}
static void block_select()
{
	pselect(0, nullptr, nullptr, nullptr, nullptr, nullptr);
}
static void block_open()
{
	close(open("fifo", O_RDONLY));
}
static void block_lock()
{
	struct flock lock = {};

	lock.l_type = F_WRLCK;
	fcntl(open("data", O_RDWR), F_SETLKW, &lock); /* held by the main thread's child */
}
static void block_condition()
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&m);
	pthread_cond_wait(&c, &m);
}

static const struct {
	const char *name;
	void (*block)();
	bool pending; /* cancelled before the call begins */
} cases[] = {
	{"read", block_read, false},	  {"pending read", block_read, true},
	{"poll", block_poll, false},	  {"nanosleep", block_sleep, false},
	{"pselect", block_select, false}, {"open of a FIFO", block_open, false},
	{"lock", block_lock, false},	  {"condition", block_condition, false},
};

struct Counted {
	~Counted()
	{
		destroyed++;
	}
};

__attribute__((noinline)) static void deep(int n, void (*block)())
{
	Counted counted;

	if (n)
		deep(n - 1, block);
	else
		block();
	returned += !n;
}

static void clean(void *)
{
	cleaned++;
}

static void *cancelled(void *which)
{
	auto &c = cases[(long)which];

	pthread_cleanup_push(clean, nullptr);
	try {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
		pthread_barrier_wait(&ready);
		if (c.pending)
			usleep(30000);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
		deep(3, c.block);
	} catch (abi::__forced_unwind &) {
		forced++;
		throw;
	}
	pthread_cleanup_pop(0);
	return nullptr;
}

static void *joined(pthread_t thread, const char *name)
{
	struct timespec t;
	void *result = nullptr;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 20;
	if (pthread_timedjoin_np(thread, &result, &t)) {
		std::printf("%s hangs\n", name);
		_exit(100);
	}
	return result;
}

static void cancel_blocked()
{
	for (unsigned long i = 0; i < sizeof(cases) / sizeof(*cases) * 10; i++) {
		const char *name = cases[i / 10].name;
		pthread_t thread;

		cleaned = destroyed = forced = returned = 0;
		pthread_create(&thread, nullptr, cancelled, (void *)(i / 10));
		pthread_barrier_wait(&ready);
		usleep(i % 4 * 3000);
		pthread_cancel(thread);
		check(joined(thread, name) == PTHREAD_CANCELED, name, "is not cancelled");
		check(cleaned == 1 && destroyed == 4 && forced == 1 && !returned, name,
		      "is not unwound");
	}
}

/* Without C++ objects, so that no instruction has anything to unwind. */
static void *busy(void *fd)
{
	char c;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
	pthread_barrier_wait(&ready);
	for (;;)
		(void)!pread(*(int *)fd, &c, 1, 0);
}

static void cancel_at_any_instruction(int fd)
{
	for (int i = 0; i < 300; i++) {
		pthread_t thread;

		pthread_create(&thread, nullptr, busy, &fd);
		pthread_barrier_wait(&ready);
		usleep(i % 10 * 40);
		pthread_cancel(thread);
		check(joined(thread, "asynchronous") == PTHREAD_CANCELED, "asynchronous");
	}
}

static void *count(void *got)
{
	char c;

	for (;;)
		*(std::atomic<int> *)got += read(ends[0], &c, 1) == 1;
}

/* A cancellation does not lose a byte that was read from a pipe. */
static void cancel_beside_data()
{
	for (int i = 0; i < 500; i++) {
		std::atomic<int> got = 0;
		pthread_t thread;
		int own[2] = {ends[0], ends[1]};
		char c;

		(void)!pipe(ends);
		pthread_create(&thread, nullptr, count, &got);
		usleep(i % 7 * 20);
		(void)!write(ends[1], "x", 1);
		pthread_cancel(thread);
		joined(thread, "beside data");
		close(ends[1]);
		check(got + read(ends[0], &c, 1) == 1, "beside data");
		close(ends[0]);
		ends[0] = own[0], ends[1] = own[1];
	}
}

static void *closes(void *fd)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
	pthread_barrier_wait(&ready);
	usleep(30000);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
	close(*(int *)fd);
	returned++;
	return nullptr;
}

/* A cancelled close leaves the descriptor open: it is read and closed here. */
static void cancel_close()
{
	for (int i = 0; i < 5; i++) {
		int fd = open("closed", O_RDONLY);
		pthread_t thread;
		char bytes[100];

		returned = 0;
		check(read(fd, bytes, 50) == 50, "close");
		pthread_create(&thread, nullptr, closes, &fd);
		pthread_barrier_wait(&ready);
		pthread_cancel(thread);
		check(joined(thread, "close") == PTHREAD_CANCELED && !returned, "close");
		check(read(fd, bytes, 100) == 50 && !close(fd), "close", "was made");
	}
}

static std::atomic<int> depth, seen, looked;

__attribute__((noinline)) static void *waits(void *)
{
	pthread_barrier_wait(&ready);
	block_read();
	return nullptr;
}

static void look(int)
{
	void *frames[40];

	depth = backtrace(frames, 40);
	for (int i = 0; i < depth; i++)
		seen += (char *)frames[i] >= (char *)waits &&
			(char *)frames[i] < (char *)waits + 60;
	looked = 1;
}

static void interrupt()
{
	for (int restart = 0; restart < 2; restart++) {
		struct sigaction action = {};
		pthread_t thread;

		action.sa_handler = look;
		action.sa_flags = restart ? SA_RESTART : 0;
		sigaction(SIGUSR1, &action, nullptr);
		depth = seen = looked = 0;
		pthread_create(&thread, nullptr, waits, nullptr);
		pthread_barrier_wait(&ready);
		usleep(200000); /* until it reads */
		pthread_kill(thread, SIGUSR1);
		for (int i = 0; i < 2000 && !looked; i++) /* the first backtrace loads a library */
			usleep(10000);
		check(depth > 4 && seen == 1, "backtrace");
		if (restart)
			(void)!write(ends[1], "x", 1);
		joined(thread, "signal");
	}
}

static void *reads(void *)
{
	char bytes[1000];
	long sum = 0, n;

	for (int i = 0; i < 100; i++) {
		int fd = open("data", O_RDONLY);

		while ((n = read(fd, bytes, sizeof(bytes))) > 0)
			sum += n;
		close(fd);
	}
	return (void *)sum;
}

int main()
{
	pthread_t thread;
	int fd = open("data", O_RDWR), status;
	struct flock lock = {};

	(void)!pipe(ends);
	pthread_barrier_init(&ready, nullptr, 2);
	if (mkfifo("fifo", 0600))
		return 99;
	pid_t child = fork();

	if (!child) {
		lock.l_type = F_WRLCK;
		fcntl(fd, F_SETLK, &lock);
		pause();
	}
	usleep(100000);
	cancel_blocked();
	kill(child, SIGKILL);
	check(wait(&status) == child, "wait");
	cancel_at_any_instruction(open("busy", O_RDONLY));
	cancel_beside_data();
	cancel_close();
	interrupt();
	pthread_create(&thread, nullptr, reads, nullptr);
	check(joined(thread, "reads") == (void *)819200, "reads");
	return failures;
}
