/*
 * Prints what a call costs, in nanoseconds: the median of several rounds. Argument: rounds (default 15).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "genuma_place.h"

enum { MAX_ROUNDS = 101, NUM_LOOKUPS = 1000000, NUM_SLOW_CALLS = 20 };

#define COUNTED_BYTES ((size_t)64 << 20)

static genuma_replicas *replicas;
static void *counted;
static uint64_t pages[1024];
static volatile uintptr_t sink;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int is_more(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void nearest_copy(void) { sink = (uintptr_t)genuma_nearest_copy(replicas); }
static void cpu_number(void) { sink = (uintptr_t)sched_getcpu(); }
static void copy_on_node(void) { sink = (uintptr_t)genuma_copy_on_node(replicas, 0); }
static void current_node(void) { sink = (uintptr_t)genuma_current_node(); }
static void scope(void) { sink = (uintptr_t)(genuma_begin_scope("interleave all", NULL) + genuma_end_scope()); }
static void count_pages(void) { sink = (uintptr_t)genuma_pages_by_node(counted, COUNTED_BYTES, pages, 1024, NULL); }

static void allocate(void) {
    void *memory;
    genuma_alloc((size_t)1 << 20, "interleave all", 0, &memory);
    genuma_free(memory);
}

static void print_cost(const char *name, void (*call)(void), int calls, int rounds) {
    double times[MAX_ROUNDS];
    for (int round = 0; round < rounds; round++) {
        double start = now_ns();
        for (int i = 0; i < calls; i++) call();
        times[round] = (now_ns() - start) / calls;
    }
    qsort(times, (size_t)rounds, sizeof *times, is_more);
    printf("%s\t%.1f\n", name, times[rounds / 2]);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 15;
    if (rounds < 1 || rounds > MAX_ROUNDS) return 2;
    if (genuma_replicate("data", 5, "all", 0, &replicas) < 0 || genuma_alloc(COUNTED_BYTES, "local", 0, &counted) < 0) {
        fprintf(stderr, "%s\n", genuma_last_message());
        return 1;
    }
    print_cost("sched_getcpu", cpu_number, NUM_LOOKUPS, rounds);
    print_cost("genuma_nearest_copy", nearest_copy, NUM_LOOKUPS, rounds);
    print_cost("genuma_copy_on_node", copy_on_node, NUM_LOOKUPS / 10, rounds);
    print_cost("genuma_current_node", current_node, NUM_LOOKUPS / 10, rounds);
    print_cost("genuma_begin_scope and genuma_end_scope", scope, NUM_SLOW_CALLS, rounds);
    print_cost("genuma_alloc and genuma_free of 1 MiB", allocate, NUM_SLOW_CALLS, rounds);
    print_cost("genuma_pages_by_node of 64 MiB", count_pages, 1, rounds);
    return genuma_free_replicas(replicas) + genuma_free(counted);
}
