//go:build cuda && linux && cgo

#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>

typedef struct { unsigned long long total, free, used; } Memory1;
enum { NOT_SUPPORTED = 3, FUNCTION_NOT_FOUND = 13 };

typedef struct {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*errorString)(int);
	int (*driverVersion)(char *, unsigned);
	int (*count)(unsigned *);
	int (*byIndex)(unsigned, void **);
	int (*uuid)(void *, char *, unsigned);
	int (*name)(void *, char *, unsigned);
	int (*memory1)(void *, Memory1 *);
	// What drivers have had for a while only: null where this one has not.
	int (*memory)(void *, Memory *);
	int (*processes)(void *, unsigned *, Process *);
	int (*processes2)(void *, unsigned *, Process *);
	int (*mig)(void *, unsigned *, unsigned *);
} Functions;

static Functions functions;

int open_library(const char *path, char *text, int size) {
	Functions found = {0};
	const struct { const char *name; void **into; int later; } all[] = {
		{"nvmlInit_v2", (void **)&found.init}, {"nvmlShutdown", (void **)&found.shutdown},
		{"nvmlErrorString", (void **)&found.errorString}, {"nvmlSystemGetDriverVersion", (void **)&found.driverVersion},
		{"nvmlDeviceGetCount_v2", (void **)&found.count}, {"nvmlDeviceGetHandleByIndex_v2", (void **)&found.byIndex},
		{"nvmlDeviceGetUUID", (void **)&found.uuid}, {"nvmlDeviceGetName", (void **)&found.name},
		{"nvmlDeviceGetMemoryInfo", (void **)&found.memory1},
		{"nvmlDeviceGetMemoryInfo_v2", (void **)&found.memory, 1}, {"nvmlDeviceGetComputeRunningProcesses_v3", (void **)&found.processes, 1},
		{"nvmlDeviceGetComputeRunningProcesses_v2", (void **)&found.processes2, 1}, {"nvmlDeviceGetMigMode", (void **)&found.mig, 1},
	};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(text, size, "%s", dlerror());
		return 1;
	}
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		if (!(*all[i].into = dlsym(library, all[i].name)) && !all[i].later) {
			snprintf(text, size, "%s has no %s: it is no NVML", path, all[i].name);
			dlclose(library);
			return 1;
		}
	}
	functions = found;
	return 0;
}

int call_init(void) { return functions.init(); }
int call_shutdown(void) { return functions.shutdown(); }
const char *call_error(int code) { return functions.errorString(code); }
int call_driver(char *text, unsigned size) { return functions.driverVersion(text, size); }
int call_count(unsigned *count) { return functions.count(count); }
int call_index(unsigned index, void **device) { return functions.byIndex(index, device); }
int call_uuid(void *device, char *text, unsigned size) { return functions.uuid(device, text, size); }
int call_name(void *device, char *text, unsigned size) { return functions.name(device, text, size); }
int has_reserved(void) { return functions.memory != 0; }
int call_memory(void *device, Memory *memory) {
	if (functions.memory) {
		memory->version = sizeof *memory | 2u << 24;
		return functions.memory(device, memory);
	}
	Memory1 found = {0};
	int code = functions.memory1(device, &found);
	*memory = (Memory){0, found.total, 0, found.free, found.used};
	return code;
}
// Both versions write the same.
int call_processes(void *device, unsigned *count, Process *all) {
	if (functions.processes) return functions.processes(device, count, all);
	return functions.processes2 ? functions.processes2(device, count, all) : FUNCTION_NOT_FOUND;
}
// A driver that has no such function has no GPU that is cut.
int call_mig(void *device, unsigned *now) {
	unsigned pending = 0;
	int code = functions.mig ? functions.mig(device, now, &pending) : NOT_SUPPORTED;
	return code == NOT_SUPPORTED ? 0 : code;
}
