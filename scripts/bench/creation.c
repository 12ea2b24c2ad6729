// SPDX-License-Identifier: Apache-2.0
/*
 * Microseconds of what `tracehint run` may make dearer, each the least of many batches: a line
 * "NAME\tMICROSECONDS" in $OUT for each. Works in an empty folder; h_N.dat is to have a hint.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 150
#define EACH 20

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

/* Make EACH files; with `own`, set an attribute as a store's own call would. */
static double make(const char *prefix, int own)
{
	char path[EACH][32];
	int fd[EACH];

	for (int i = 0; i < EACH; i++)
		snprintf(path[i], sizeof(path[i]), "%s%d.dat", prefix, i);
	double start = now();

	for (int i = 0; i < EACH; i++) {
		fd[i] = open(path[i], O_CREAT | O_EXCL | O_WRONLY, 0644);
		if (own)
			fsetxattr(fd[i], "user.DP", "local", 5, 0);
	}
	double took = now() - start;

	for (int i = 0; i < EACH; i++) {
		must(fd[i] >= 0, path[i]);
		close(fd[i]);
		unlink(path[i]);
	}
	return took;
}

static double unhinted(void)
{
	return make("n_", 0);
}

static double hinted(void)
{
	return make("h_", 0);
}

static double by_itself(void)
{
	return make("o_", 1);
}

static double there(void)
{
	double start = now();

	for (int i = 0; i < EACH; i++)
		close(open("there", O_RDONLY));
	return now() - start;
}

static double reads(void)
{
	int fd = open("there", O_RDONLY);
	char byte;

	must(fd >= 0, "there");
	double start = now();

	for (int i = 0; i < EACH; i++)
		must(pread(fd, &byte, 1, 0) == 1, "read");
	double took = now() - start;

	close(fd);
	return took;
}

static double starts(void)
{
	char *words[] = {"/bin/true", NULL};
	pid_t child;
	int status;
	double start = now();

	must(!posix_spawn(&child, words[0], NULL, NULL, words, environ), words[0]);
	waitpid(child, &status, 0);
	return (now() - start) * EACH;
}

int main(void)
{
	static const struct {
		const char *name;
		double (*once)(void);
	} calls[] = {
		{"makes a file that no rule is for", unhinted},
		{"makes a file and hints it", hinted},
		{"makes a file and sets an attribute itself", by_itself},
		{"opens a file that is there", there},
		{"reads a byte", reads},
		{"starts /bin/true", starts},
	};
	FILE *out = fopen(getenv("OUT"), "w");
	int fd = open("there", O_CREAT | O_WRONLY, 0644);

	must(out && fd >= 0 && write(fd, "1", 1) == 1, "the folder");
	close(fd);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		double least = 1e12;

		for (int batch = 0; batch < BATCHES; batch++) {
			double took = calls[i].once() / EACH;

			least = took < least ? took : least;
		}
		fprintf(out, "%s\t%.3f\n", calls[i].name, least);
	}
	return fclose(out);
}
