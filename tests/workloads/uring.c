// SPDX-License-Identifier: Apache-2.0
#include "workload.h"
const struct workload uring_cases[] = { { 0 } };
