/* Told of by CUDA_INJECTION64_PATH, the driver loads this into a process and calls InitializeInjection (CUDA's CUPTI
 * documentation, "Injection"): every kernel that ran is a line of the file that DEVMAP_TRACE names: begin and end in
 * nanoseconds, then its name. KERNEL is the newest CUpti_ActivityKernel of the header. Records are written as buffers
 * fill and every tenth of a second, since a process of Go runs no handlers at its end. */

#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *lines;

static void wanted(uint8_t **buffer, size_t *size, size_t *most)
{
	*size = 4 << 20;
	*most = 0;
	*buffer = aligned_alloc(8, *size);
}

static void filled(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
			KERNEL *kernel = (KERNEL *)record;
			fprintf(lines, "%llu\t%llu\t%s\n", (unsigned long long)kernel->start, (unsigned long long)kernel->end, kernel->name);
		}
	}
	fflush(lines);
	free(buffer);
}

int InitializeInjection(void)
{
	const char *path = getenv("DEVMAP_TRACE");
	if (path == NULL || (lines = fopen(path, "a")) == NULL)
		return 0;
	if (cuptiActivityRegisterCallbacks(wanted, filled) || cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL))
		return 0;
	cuptiActivityFlushPeriod(100);
	return 1;
}
