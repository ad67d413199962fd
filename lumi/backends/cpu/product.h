/* The matrix product of the machine's BLAS.  The loader sets the two variables. */
#if defined(_OPENMP)
#include <omp.h>
#endif

void *lumi_sgemm;
int lumi_sgemm_wide;

typedef void (*sgemm_wide)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                           const float *, int64_t, float, float *, int64_t);
typedef void (*sgemm_narrow)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                             float, float *, int);

INLINE int team_size(void) {
#if defined(_OPENMP)
  return omp_get_num_threads();
#else
  return 1;
#endif
}

INLINE int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

/* The product by three loops, for what the BLAS has no sizes for. */
static void plain_product(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_inner,
                          const float *b, int64_t b_row, int64_t b_inner, float *c, int64_t c_row) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int64_t x = 0; x < k; x++) sum += a[i * a_row + x * a_inner] * b[j * b_row + x * b_inner];
      c[i * c_row + j] = sum;
    }
}

/* c[m n] = a[m k] b[n k]ᵀ; each factor has one step of 1, the rows of c follow each other by c_row. */
static void matrix_product(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_inner,
                           const float *b, int64_t b_row, int64_t b_inner, float *c, int64_t c_row) {
  enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
  int ta = a_inner == 1 ? PLAIN : TRANSPOSED, tb = b_inner == 1 ? TRANSPOSED : PLAIN;
  /* with one row or column a step may be anything, but BLAS wants it no less than the row's length */
  int64_t lda = ta == PLAIN ? greatest(a_row, greatest(k, 1)) : greatest(a_inner, greatest(m, 1));
  int64_t ldb = tb == TRANSPOSED ? greatest(b_row, greatest(k, 1)) : greatest(b_inner, greatest(n, 1));
  int64_t ldc = greatest(c_row, greatest(n, 1));
  if (lumi_sgemm_wide)
    ((sgemm_wide)lumi_sgemm)(ROW_MAJOR, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
  else if (greatest(greatest(greatest(m, n), greatest(k, lda)), greatest(ldb, ldc)) > INT32_MAX)
    plain_product(m, n, k, a, a_row, a_inner, b, b_row, b_inner, c, c_row);
  else
    ((sgemm_narrow)lumi_sgemm)(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, 1.0f, a, (int)lda, b, (int)ldb,
                               0.0f, c, (int)ldc);
}
