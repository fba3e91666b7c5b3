//go:build cuda && linux && cgo && amd64

#define _GNU_SOURCE
#include "lt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct {
	int (*create)(void **);
	int (*destroy)(void *);
	size_t (*version)(void);
	const char *(*status)(int);
	int (*desc)(void **, int, int);
	int (*desc_set)(void *, int, const void *, size_t);
	int (*desc_end)(void *);
	int (*layout)(void **, int, uint64_t, uint64_t, int64_t);
	int (*layout_end)(void *);
	int (*preference)(void **);
	int (*preference_set)(void *, int, const void *, size_t);
	int (*preference_end)(void *);
	int (*heuristic)(void *, void *, void *, void *, void *, void *, void *, int, Heuristic *, int *);
	int (*matmul)(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *, void *, void *,
	              const Algorithm *, void *, size_t, void *);
} lt;

int lt_open(const char *path, char *text, int size) {
	static const struct { const char *name; void **into; } all[] = {
		{"cublasLtCreate", (void **)&lt.create}, {"cublasLtDestroy", (void **)&lt.destroy},
		{"cublasLtGetVersion", (void **)&lt.version}, {"cublasLtGetStatusName", (void **)&lt.status},
		{"cublasLtMatmulDescCreate", (void **)&lt.desc}, {"cublasLtMatmulDescSetAttribute", (void **)&lt.desc_set},
		{"cublasLtMatmulDescDestroy", (void **)&lt.desc_end}, {"cublasLtMatrixLayoutCreate", (void **)&lt.layout},
		{"cublasLtMatrixLayoutDestroy", (void **)&lt.layout_end},
		{"cublasLtMatmulPreferenceCreate", (void **)&lt.preference}, {"cublasLtMatmulPreferenceSetAttribute", (void **)&lt.preference_set},
		{"cublasLtMatmulPreferenceDestroy", (void **)&lt.preference_end},
		{"cublasLtMatmulAlgoGetHeuristic", (void **)&lt.heuristic}, {"cublasLtMatmul", (void **)&lt.matmul},
	};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(text, size, "%s", dlerror());
		return 1;
	}
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		if (!(*all[i].into = dlsym(library, all[i].name))) {
			snprintf(text, size, "%s has no %s", path, all[i].name);
			dlclose(library);
			return 1;
		}
	}
	return 0;
}

const char *lt_path(void) {
	Dl_info found;
	return lt.create && dladdr((void *)lt.create, &found) ? found.dli_fname : "";
}
const char *lt_status(int code) { return lt.status(code); }
size_t lt_version(void) { return lt.version(); }
int lt_create(void **handle) { return lt.create(handle); }
int lt_destroy(void *handle) { return lt.destroy(handle); }

/* Each call runs only while those before it went well. */
#define TRY(call) (code = code ? code : (call))

static int describe(const Product *of, Plan *plan) {
	int code = lt.desc(&plan->desc, COMPUTE_32F, REAL_32F), transposed = TRANSPOSED, epilogue = EPILOGUE_BIAS;
	if (of->transpose_a) TRY(lt.desc_set(plan->desc, DESC_TRANSPOSE_A, &transposed, sizeof transposed));
	if (of->transpose_b) TRY(lt.desc_set(plan->desc, DESC_TRANSPOSE_B, &transposed, sizeof transposed));
	if (of->bias) {
		TRY(lt.desc_set(plan->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue));
		TRY(lt.desc_set(plan->desc, DESC_BIAS_TYPE, &of->type_out, sizeof of->type_out));
	}
	TRY(lt.layout(&plan->a, of->type_in, of->transpose_a ? of->inner : of->rows, of->transpose_a ? of->rows : of->inner, of->stride_a));
	TRY(lt.layout(&plan->b, of->type_in, of->transpose_b ? of->columns : of->inner, of->transpose_b ? of->inner : of->columns, of->stride_b));
	TRY(lt.layout(&plan->c, of->type_out, of->rows, of->columns, of->stride_c));
	TRY(lt.layout(&plan->d, of->type_out, of->rows, of->columns, of->stride_d));
	return code;
}

int lt_plan(void *handle, const Product *of, Plan *plan, int *found) {
	void *preference = NULL;
	uint32_t align[] = {of->align_a, of->align_b, of->align_c, of->align_d}, reduction = REDUCTION_COMPUTE_TYPE;
	memset(plan, 0, sizeof *plan);
	int code = describe(of, plan);
	TRY(lt.preference(&preference));
	TRY(lt.preference_set(preference, PREFERENCE_WORKSPACE, &of->workspace, sizeof of->workspace));
	TRY(lt.preference_set(preference, PREFERENCE_REDUCTION, &reduction, sizeof reduction));
	for (int i = 0; i < 4; i++) TRY(lt.preference_set(preference, PREFERENCE_ALIGNMENT + i, &align[i], sizeof align[i]));
	TRY(lt.heuristic(handle, plan->desc, plan->a, plan->b, plan->c, plan->d, preference, 1, &plan->best, found));
	if (preference) lt.preference_end(preference);
	return code;
}

void lt_forget(Plan *plan) {
	if (plan->a) lt.layout_end(plan->a);
	if (plan->b) lt.layout_end(plan->b);
	if (plan->c) lt.layout_end(plan->c);
	if (plan->d) lt.layout_end(plan->d);
	if (plan->desc) lt.desc_end(plan->desc);
	memset(plan, 0, sizeof *plan);
}

int lt_run(void *handle, Plan *plan, float alpha, float beta, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t bias,
           uint64_t workspace, size_t bytes, void *stream) {
	int code = 0;
	if (bias) TRY(lt.desc_set(plan->desc, DESC_BIAS, &bias, sizeof bias));
	TRY(lt.matmul(handle, plan->desc, &alpha, (void *)a, plan->a, (void *)b, plan->b, &beta, (void *)c, plan->c, (void *)d, plan->d,
	              &plan->best.algorithm, (void *)workspace, bytes, stream));
	return code;
}
