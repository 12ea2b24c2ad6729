/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the BPF object. Functions that can fail return 0 or -errno. */
#ifndef TRACEHINT_OBJECT_H
#define TRACEHINT_OBJECT_H

#include <bpf/libbpf.h>
#include "rec.h"

/* config.c */
int config_object(struct bpf_object *object, const struct options *options,
		  unsigned long long cookie, bool direct);
struct bpf_map *config_map(struct bpf_object *object, const char *name);

/* programs.c: the BPF programs and their tracepoints */
void programs_find(void);
int programs_prepare_by_number(void);
void programs_prepare_by_name(void);
void programs_choose(struct bpf_object *object, struct th_config *cfg, bool direct);
int programs_attach(struct bpf_object *object);
void programs_detach(void);
unsigned long long programs_misses(struct bpf_object *object);

#endif
