// SPDX-License-Identifier: Apache-2.0
/* Loader of event.bpf.o: writes each event to a file. event OBJECT OUT COMMAND... */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int on_event(void *out, void *data, size_t size)
{
	return fwrite(data, size, 1, out) == 1 ? 0 : 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *object = argc > 3 ? bpf_object__open(argv[1]) : NULL;
	FILE *out = argc > 3 ? fopen(argv[2], "w") : NULL;
	struct bpf_program *program;
	struct ring_buffer *ring;
	unsigned char one = 1;
	int status = 0;
	pid_t pid;

	if (!object || !out || bpf_object__load(object))
		return 125;
	bpf_object__for_each_program(program, object) if (!bpf_program__attach(program)) return 125;
	ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "events"), on_event, out,
				NULL);
	pid = fork();
	if (!pid) {
		pid = getpid();
		bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "followed"), &pid, &one,
				    0);
		execvp(argv[3], argv + 3);
		_exit(127);
	}
	while (waitpid(pid, &status, WNOHANG) != pid)
		ring_buffer__poll(ring, 20);
	ring_buffer__consume(ring);
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
