// A pointer chase in plain C: ns a load of each repetition. usage: chase BYTES LOADS REPETITIONS
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: chase BYTES LOADS REPETITIONS\n"), 2;
  size_t bytes = strtoull(argv[1], 0, 10), n = bytes / 64, loads = strtoull(argv[2], 0, 10), huge = 2 << 20;
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(0, &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);
  char *x = mmap(0, bytes + 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  x = (char *)(((size_t)x + huge - 1) & -huge);
  madvise(x, (bytes + huge - 1) & -huge, MADV_HUGEPAGE);
  uint32_t *next = malloc(n * 4);
  uint64_t random = 42;
  for (size_t i = 0; i < n; i++) next[i] = i;
  for (size_t i = n - 1; i > 0; i--) {  // Sattolo: one cycle
    random = random * 6364136223846793005u + 1442695040888963407u;
    size_t j = (unsigned __int128)random * i >> 64;
    uint32_t t = next[i];
    next[i] = next[j], next[j] = t;
  }
  for (size_t i = 0; i < n; i++) *(void **)(x + 64 * i) = x + 64 * (size_t)next[i];
  void **p = (void **)x;
  for (size_t i = 0; i < n; i++) p = *p;
  for (int r = 0; r < atoi(argv[3]); r++) {
    double start = now();
#pragma GCC unroll 64
    for (size_t i = 0; i < loads; i++) p = *p;
    double end = now();
    __asm__ volatile("" : : "r"(p) : "memory");
    printf("%.4f\n", (end - start) / loads);
  }
  return p == 0;
}
