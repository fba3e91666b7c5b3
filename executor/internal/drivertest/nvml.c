//go:build ignore

/* A libnvidia-ml.so.1 for tests: as many GPUs as cuda.c has, each with a gigabyte,
 * of which GPU i's driver keeps i MiB, other processes those of FAKE_NVML_OTHERS
 * (NUMBER:MEBIBYTES or, where it is not told, NUMBER:-, of which it has 2), and this
 * process what cuda.c gave it. With FAKE_NVML_HIDES it shows no process; after so many
 * looks as FAKE_NVML_STAY says the others are gone. With FAKE_NVML_HELD it is what that
 * file says now, a line a process: GPU NUMBER MEBIBYTES. With FAKE_CUDA_SHARED it is what
 * every process there says (shared.h), and of a GPU's size what cuda.c says. GPUs whose numbers
 * FAKE_NVML_MIG has are in MIG mode. Compiled with OLD it is that of a driver from
 * before memory and processes had their newer versions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared.h"

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;

static int open_count;
static char places[64]; /* whose addresses are handles: Go takes a small number in a pointer for a fault */

static int count(void) {
	const char *text = getenv("FAKE_CUDA_GPUS");
	return text && *text ? atoi(text) : 1;
}

int nvmlInit_v2(void) { open_count++; return 0; }
int nvmlShutdown(void) { return open_count > 0 ? open_count--, 0 : 1; }
const char *nvmlErrorString(int code) { return code == 6 ? "Not Found" : "Some error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "520.61.05"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *devices) { *devices = count(); return open_count ? 0 : 1; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &places[index % sizeof places]; return (int)index < count() ? 0 : 2; }
static int index_of(void *device) { return (int)((char *)device - places); }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
	int b = 0x10 + index_of(device);
	snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b);
	return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
	for (int i = 0; i < count(); i++) {
		char text[64];
		nvmlDeviceGetUUID(&places[i], text, sizeof text);
		if (!strcmp(text, uuid)) {
			*device = &places[i];
			return 0;
		}
	}
	return 6;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) { snprintf(text, size, "Fake %d", index_of(device)); return 0; }
static size_t own(int device) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	size_t (*used)(int) = library ? (size_t(*)(int))dlsym(library, "fakeUsed") : 0;
	return used ? used(device) : 0;
}
static unsigned from_file(const char *path, int device, Process *all) {
	FILE *file = fopen(path, "r");
	unsigned found = 0, pid;
	unsigned long long mebibytes;
	for (int on; file && found < 16 && fscanf(file, "%d %u %llu", &on, &pid, &mebibytes) == 3;)
		if (on == device) all[found++] = (Process){pid, mebibytes << 20, -1, -1};
	if (file) fclose(file);
	return found;
}
typedef struct { Process *all; unsigned found; } Found;

static void add(void *into, int process, unsigned long long used) {
	Found *found = into;
	if (found->found < 16) found->all[found->found++] = (Process){process, used, -1, -1};
}

static unsigned from_folder(int device, Process *all) {
	Found found = {all, 0};
	shared_each(device, add, &found);
	return found.found;
}

static unsigned all_processes(int device, Process *all) {
	static int listed;
	unsigned found = 0;
	if (getenv("FAKE_NVML_HELD")) return from_file(getenv("FAKE_NVML_HELD"), device, all);
	if (getenv("FAKE_CUDA_SHARED") && !access(getenv("FAKE_CUDA_SHARED"), W_OK)) return from_folder(device, all);
	const char *at = getenv("FAKE_NVML_OTHERS"), *stay = getenv("FAKE_NVML_STAY");
	if (stay && listed++ >= atoi(stay)) at = "";
	for (at = at ? at : "41:3,42:-"; *at; at += *at == ',') {
		char *end;
		all[found].pid = strtoul(at, &end, 10);
		at = end + (*end == ':');
		all[found].used = -1ull; /* not told */
		if (*at == '-') at++;
		else all[found].used = strtoull(at, &end, 10) << 20, at = end;
		found++;
	}
	if (own(device)) all[found++] = (Process){getpid(), own(device), -1, -1};
	return found;
}
static void memory_of(void *device, Memory2 *memory) {
	Process all[16];
	unsigned found = all_processes(index_of(device), all);
	memory->total = getenv("FAKE_CUDA_SHARED") ? bytes_of(index_of(device)) : 1ull << 30, memory->reserved = (unsigned long long)index_of(device) << 20, memory->used = 0;
	for (unsigned i = 0; i < found; i++) memory->used += all[i].used == -1ull ? 2ull << 20 : all[i].used;
	memory->free = memory->total - memory->reserved - memory->used;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
	Memory2 found;
	memory_of(device, &found);
	*memory = (Memory){found.total, found.free, found.used + found.reserved};
	return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending) {
	const char *cut = getenv("FAKE_NVML_MIG");
	*now = *pending = cut && strchr(cut, '0' + index_of(device));
	return cut ? 0 : 3;
}
#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *device, Memory2 *memory) {
	if (memory->version != (sizeof *memory | 2u << 24)) return 25;
	memory_of(device, memory);
	return 0;
}
#define nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses_v3
#endif
int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *size, Process *all) {
	Process found[16];
	unsigned room = *size;
	*size = getenv("FAKE_NVML_HIDES") ? 0 : all_processes(index_of(device), found);
	if (room < *size) return 7;
	memcpy(all, found, *size * sizeof *all);
	return 0;
}
