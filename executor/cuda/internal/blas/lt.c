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
	int (*layout_set)(void *, int, const void *, size_t);
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
		{"cublasLtMatrixLayoutSetAttribute", (void **)&lt.layout_set}, {"cublasLtMatrixLayoutDestroy", (void **)&lt.layout_end},
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

static int lay(void **layout, int type, uint64_t rows, uint64_t columns, int64_t stride, const Product *of, int64_t step) {
	int code = lt.layout(layout, type, rows, columns, stride);
	if (of->batch > 1) {
		TRY(lt.layout_set(*layout, LAYOUT_BATCH, &of->batch, sizeof of->batch));
		TRY(lt.layout_set(*layout, LAYOUT_BATCH_STRIDE, &step, sizeof step));
	}
	return code;
}

static int describe(const Product *of, Plan *plan) {
	int code = lt.desc(&plan->desc, COMPUTE_32F, REAL_32F), transposed = TRANSPOSED, epilogue = EPILOGUE_BIAS;
	if (of->transpose_a) TRY(lt.desc_set(plan->desc, DESC_TRANSPOSE_A, &transposed, sizeof transposed));
	if (of->transpose_b) TRY(lt.desc_set(plan->desc, DESC_TRANSPOSE_B, &transposed, sizeof transposed));
	if (of->bias) {
		TRY(lt.desc_set(plan->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue));
		TRY(lt.desc_set(plan->desc, DESC_BIAS_TYPE, &of->type_out, sizeof of->type_out));
	}
	TRY(lay(&plan->a, of->type_in, of->transpose_a ? of->inner : of->rows, of->transpose_a ? of->rows : of->inner, of->stride_a, of, of->step_a));
	TRY(lay(&plan->b, of->type_in, of->transpose_b ? of->columns : of->inner, of->transpose_b ? of->inner : of->columns, of->stride_b, of, of->step_b));
	TRY(lay(&plan->c, of->type_out, of->rows, of->columns, of->stride_c, of, of->step_c));
	return code;
}

int lt_plan(void *handle, const Product *of, Plan *plan, int *found) {
	void *preference = NULL;
	uint32_t align[] = {of->align_a, of->align_b, of->align_c, of->align_c};
	memset(plan, 0, sizeof *plan);
	int code = describe(of, plan);
	TRY(lt.preference(&preference));
	TRY(lt.preference_set(preference, PREFERENCE_WORKSPACE, &of->workspace, sizeof of->workspace));
	for (int i = 0; i < 4; i++) TRY(lt.preference_set(preference, PREFERENCE_ALIGNMENT + i, &align[i], sizeof align[i]));
	TRY(lt.heuristic(handle, plan->desc, plan->a, plan->b, plan->c, plan->c, preference, 1, &plan->best, found));
	if (preference) lt.preference_end(preference);
	return code;
}

void lt_forget(Plan *plan) {
	if (plan->a) lt.layout_end(plan->a);
	if (plan->b) lt.layout_end(plan->b);
	if (plan->c) lt.layout_end(plan->c);
	if (plan->desc) lt.desc_end(plan->desc);
	memset(plan, 0, sizeof *plan);
}

int lt_run(void *handle, Plan *plan, float alpha, float beta, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t bias,
           uint64_t workspace, size_t bytes, void *stream) {
	int code = 0;
	if (bias) TRY(lt.desc_set(plan->desc, DESC_BIAS, &bias, sizeof bias));
	TRY(lt.matmul(handle, plan->desc, &alpha, (void *)a, plan->a, (void *)b, plan->b, &beta, (void *)c, plan->c, (void *)d, plan->c,
	              &plan->best.algorithm, (void *)workspace, bytes, stream));
	return code;
}
