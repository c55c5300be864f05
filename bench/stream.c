// STREAM's triad in plain C: GB/s of each repetition, all threads together. usage: stream BYTES REPETITIONS
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static double *array(size_t n, double value) {
  double *x = mmap(0, n * 8 + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  x = (double *)(((size_t)x + (2 << 20) - 1) & -(size_t)(2 << 20));
  madvise(x, n * 8, MADV_HUGEPAGE);
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) x[i] = value;
  return x;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: stream BYTES REPETITIONS\n"), 2;
  size_t n = strtoull(argv[1], 0, 10) / 8;
  double *restrict a = array(n, 1), *restrict b = array(n, 2), *restrict c = array(n, 0.5);
  for (int r = 0; r <= atoi(argv[2]); r++) {
    double start = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
    if (r) printf("%.4f\n", 24e-9 * n / (omp_get_wtime() - start));
  }
  return a[n / 2] != 3.5;
}
