/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c: what is attached where. Functions that can fail return 0 or -errno. */
#ifndef TRACEHINT_PROGRAMS_H
#define TRACEHINT_PROGRAMS_H

#include <bpf/libbpf.h>
#include "rec.h"

void programs_find(void);
int programs_prepare_by_number(void);
void programs_prepare_by_name(void);
void programs_choose(struct bpf_object *object, struct th_config *cfg, bool direct);
int programs_attach(struct bpf_object *object);
void programs_detach(void);
unsigned long long programs_misses(struct bpf_object *object);

#endif
