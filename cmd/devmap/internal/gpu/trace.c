/* Told of by CUDA_INJECTION64_PATH, the driver loads this into a process and calls InitializeInjection (CUDA's CUPTI
 * documentation, "Injection"): every kernel that ran is a line of the file that DEVMAP_TRACE names: begin and end in
 * nanoseconds, then its name. With DEVMAP_TRACE_COPIES copies to the GPU are lines too: "copy" and how many bytes. KERNEL
 * and COPY are the newest CUpti_ActivityKernel and CUpti_ActivityMemcpy of the header. Records are written as buffers
 * fill, every tenth of a second those of which no kernel still runs, and the rest before a context ends: a process of Go
 * runs no handlers at its end. */

#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *lines;

static void wanted(uint8_t **buffer, size_t *size, size_t *most)
{
	*size = 256 << 10;
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
		} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
			COPY *copy = (COPY *)record;
			if (copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD)
				fprintf(lines, "%llu\t%llu\tcopy %llu\n", (unsigned long long)copy->start, (unsigned long long)copy->end, (unsigned long long)copy->bytes);
		}
	}
	fflush(lines);
	free(buffer);
}

/* What CUPTI refuses is a line of the file, too. */
static int refused(const char *call, CUptiResult status)
{
	if (status == CUPTI_SUCCESS)
		return 0;
	fprintf(lines, "0\t0\t%s: status %d\n", call, (int)status);
	fflush(lines);
	return 1;
}

static void ending(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *about)
{
	if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING)
		refused("cuptiActivityFlushAll", cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
}

int InitializeInjection(void)
{
	CUpti_SubscriberHandle subscriber;
	const char *path = getenv("DEVMAP_TRACE");
	if (path == NULL || (lines = fopen(path, "a")) == NULL)
		return 0;
	if (refused("cuptiActivityRegisterCallbacks", cuptiActivityRegisterCallbacks(wanted, filled)) ||
	    refused("cuptiActivityEnable", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ||
	    (getenv("DEVMAP_TRACE_COPIES") && refused("cuptiActivityEnable", cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY))))
		return 0;
	refused("cuptiActivityFlushPeriod", cuptiActivityFlushPeriod(100));
	if (!refused("cuptiSubscribe", cuptiSubscribe(&subscriber, ending, NULL)))
		refused("cuptiEnableCallback", cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING));
	return 1;
}
