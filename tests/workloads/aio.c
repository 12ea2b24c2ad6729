// SPDX-License-Identifier: Apache-2.0
#include "workload.h"
const struct workload aio_cases[] = { { 0 } };
