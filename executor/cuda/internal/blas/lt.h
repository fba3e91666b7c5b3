#ifndef DEVMAP_LT_H
#define DEVMAP_LT_H

#include <stddef.h>
#include <stdint.h>

/* What the cuBLASLt reference documents, the same in CUDA 11, 12 and 13. */
typedef struct { uint64_t data[8]; } Algorithm;
typedef struct {
	Algorithm algorithm;
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
} Heuristic;

/* cudaDataType_t, cublasComputeType_t */
enum { REAL_32F = 0, REAL_16BF = 14, COMPUTE_32F = 68 };
/* cublasLtMatmulDescAttributes_t */
enum { DESC_TRANSPOSE_A = 3, DESC_TRANSPOSE_B = 4, DESC_EPILOGUE = 7, DESC_BIAS = 8, DESC_BIAS_TYPE = 26 };
/* cublasLtEpilogue_t, cublasOperation_t */
enum { EPILOGUE_BIAS = 4, TRANSPOSED = 1 };
/* cublasLtMatmulPreferenceAttributes_t; alignments of a, b, c, d follow the last */
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_REDUCTION = 3, PREFERENCE_ALIGNMENT = 5 };
/* cublasLtReductionScheme_t: parts of a sum, where there are some, lie in the
 * workspace in fp32 and are added up in order; not in d, rounded to its type */
enum { REDUCTION_COMPUTE_TYPE = 2 };

/* lt_open opens the library at path, and writes why it cannot. */
int lt_open(const char *path, char *text, int size);
const char *lt_path(void);
const char *lt_status(int code);
size_t lt_version(void);
int lt_create(void **handle);
int lt_destroy(void *handle);

/* A product is column-major d = alpha·op(a)·op(b) + beta·c (+ bias). */
typedef struct {
	int type_in, type_out, transpose_a, transpose_b, bias;
	uint64_t rows, columns, inner;
	int64_t stride_a, stride_b, stride_c, stride_d;
	uint32_t align_a, align_b, align_c, align_d;
	size_t workspace;
} Product;

typedef struct {
	void *desc, *a, *b, *c, *d;
	Heuristic best;
} Plan;

int lt_plan(void *handle, const Product *product, Plan *plan, int *found);
void lt_forget(Plan *plan);
int lt_run(void *handle, Plan *plan, float alpha, float beta, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t bias,
           uint64_t workspace, size_t bytes, void *stream);

#endif
