//go:build ignore

/* A libnvidia-ml.so.1 for tests: as many GPUs as cuda.c has, each with a gigabyte,
 * of which GPU i's driver keeps i MiB and two processes some. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;

static int open_count;

static int count(void) {
	const char *text = getenv("FAKE_CUDA_GPUS");
	return text && *text ? atoi(text) : 1;
}

int nvmlInit_v2(void) { open_count++; return 0; }
int nvmlShutdown(void) { return open_count-- > 0 ? 0 : 1; }
const char *nvmlErrorString(int code) { return code == 6 ? "Not Found" : "Some error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "520.61.05"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *devices) { *devices = count(); return open_count ? 0 : 1; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(size_t)(index + 1); return (int)index < count() ? 0 : 2; }
static int index_of(void *device) { return (int)(size_t)device - 1; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
	int b = 0x10 + index_of(device);
	snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b);
	return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
	for (int i = 0; i < count(); i++) {
		char text[64];
		nvmlDeviceGetUUID((void *)(size_t)(i + 1), text, sizeof text);
		if (!strcmp(text, uuid)) {
			*device = (void *)(size_t)(i + 1);
			return 0;
		}
	}
	return 6;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) { snprintf(text, size, "Fake %d", index_of(device)); return 0; }
int nvmlDeviceGetMemoryInfo_v2(void *device, Memory2 *memory) {
	if (memory->version != (sizeof *memory | 2u << 24)) return 25;
	memory->total = 1ull << 30, memory->reserved = (unsigned long long)index_of(device) << 20, memory->used = 5ull << 20;
	memory->free = memory->total - memory->reserved - memory->used;
	return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *size, Process *all) {
	(void)device;
	unsigned room = *size;
	*size = 2;
	if (room < 2) return 7;
	all[0] = (Process){41, 3 << 20, -1, -1};
	all[1] = (Process){42, -1ull, -1, -1}; /* not told */
	return 0;
}
