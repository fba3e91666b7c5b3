//go:build ignore

/* A libcuda.so.1 for tests: GPUs whose memory is the host's, and whose streams run
 * what they are given late and in an order that is drawn, as far as streams and
 * events leave one. What does not wait for what it needs finds poison, or bytes of
 * another time. Addresses are looked at: what is not mapped for a GPU, it does not
 * touch, and every call behind that fails as behind a fault of a real one, for whatever
 * GPU; with FAKE_CUDA_ALONE for the same GPU, and what others wait for of it does not come.
 *
 * FAKE_CUDA_GPUS, _BYTES (of each, or of the first, the second…), _SEED, _FULL (bytes
 * that can be had, where that is less than what it says), _PEERS (which GPUs reach which,
 * as in 0>1,2>0; 0: none any other), _TAKEN (the number of a GPU that another process has
 * for itself), _FAIL (which call of those that need memory finds none, from 1), _REGISTER
 * (0: no memory is), _FLIP (the copy from the host of which a byte is wrong), _CROSS (a
 * byte of each copy from one GPU to another is wrong), _DENIES (GPUs that reach others get
 * no access), _FORGETS (1: a byte of each kernel pattern is wrong; 2: its first and its
 * last granule are one), _STAINS (a byte of each fill is wrong), _KEEPS (the release from which on a granule is lost with each), _SHARED (the folder in which processes tell each
 * other what they hold: shared.h) and _HEALED (GPUs are as if nothing had been) are read from
 * the environment when they count. Kernels are those at the end of this file, whatever a module says. */
#define _GNU_SOURCE
#include <cuda.h>

#include <pthread.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared.h"

enum { GPUS = 8, ARENAS = 1 << 12, STREAMS = 1 << 10, GRANULE = 2 << 20, KERNELS = 8, HANGS = 2 };

typedef struct CUevent_st {
	int device;
	unsigned long recorded, ended; /* how often */
	double at;
} Event;

typedef struct op {
	enum { COPY, FILL, WORD, RECORD, AWAIT, LAUNCH } what;
	CUdeviceptr to, from;
	size_t bytes;
	int value, host; /* host: 1 from is the host's, 2 to is */
	Event *event;
	unsigned long number; /* of the recording that is meant */
	int kernel;
	unsigned grid;
	unsigned char *arguments;
	struct op *next;
} Op;

typedef struct CUstream_st {
	int device, busy;
	Op *first, **last;
	struct CUgraph_st *captured; /* what it is given goes here, while there is one */
} Stream;

struct CUgraph_st { Op *first, **last; };

struct CUctx_st { int device; };
struct CUfunc_st { int kernel; };
typedef struct { char *base; size_t bytes; int handle; unsigned allowed; } Arena;
typedef struct { int device; size_t bytes; int maps, released; } Handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static pthread_t worker;
static int started, faults[GPUS]; /* by GPU: what its context answers to everything */
static struct CUctx_st contexts[GPUS];
static int retained[GPUS];
static size_t taken[GPUS], kept[GPUS]; /* kept: what it does not give back */
static Arena arenas[ARENAS];
static Handle handles[ARENAS];
static Stream *streams[STREAMS];
static unsigned long drawn;
static long copies; /* from the host, while there is a FAKE_CUDA_FLIP */
static __thread struct CUctx_st *current;

static long setting(const char *name, long otherwise) {
	const char *text = getenv(name);
	return text && *text ? atol(text) : otherwise;
}

static int reaches(int device, int other) {
	char pair[16];
	const char *pairs = getenv("FAKE_CUDA_PEERS");
	snprintf(pair, sizeof pair, "%d>%d", device, other);
	return !pairs || !*pairs || strstr(pairs, pair);
}

/* fail stops a GPU. What it did is told by all contexts of the process together, as
 * drivers do, when every other GPU has come to where it waits for that one. */
static int lost[GPUS], idle, waits[GPUS]; /* waits: threads that a call of this GPU keeps */
static unsigned long calls[GPUS], seen[GPUS];
static void fail(int device) { lost[device] = 1; }

/* looked reports that the host, however slow it is, called every GPU since the last time
 * or waits for it. A host that makes no call for two seconds has nothing more to give. */
static int looked(int stopped) {
	static int unseen;
	int all = 1;
	for (int i = 0; i < GPUS; i++)
		if (retained[i] && !waits[i] && calls[i] == seen[i] && !setting("FAKE_CUDA_ALONE", 0)) all = 0;
	if (all || !stopped) unseen = 0;
	if (!all && unseen < 2000) return unseen++, 0;
	memcpy(seen, calls, sizeof seen);
	return 1;
}

static void tell(int stopped) {
	int ready = looked(stopped);
	idle = stopped ? idle + ready : 0;
	for (int device = 0; device < GPUS; device++)
		for (int i = 0; lost[device] && idle > 20 && i < GPUS; i++)
			if (i == device || !setting("FAKE_CUDA_ALONE", 0)) faults[i] = CUDA_ERROR_ILLEGAL_ADDRESS;
	if (idle > 20) pthread_cond_broadcast(&moved);
}

static unsigned draw(unsigned below) {
	drawn = drawn * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(drawn >> 33) % below;
}

static int reach(CUdeviceptr at, size_t bytes, int device) {
	char *begin = (char *)at;
	for (int i = 0; i < ARENAS; i++)
		if (arenas[i].base && arenas[i].handle && begin >= arenas[i].base && begin + bytes <= arenas[i].base + arenas[i].bytes)
			return arenas[i].allowed >> device & 1;
	return 0;
}

static int device_at(CUdeviceptr at) {
	for (int i = 0; i < ARENAS; i++)
		if (arenas[i].base && arenas[i].handle && (char *)at >= arenas[i].base && (char *)at < arenas[i].base + arenas[i].bytes)
			return handles[arenas[i].handle].device;
	return -1;
}

typedef struct { unsigned long long seed, count, at[64], bytes[64], modes[64]; } Mix;
static void run_kernel(int device, int kernel, unsigned grid, unsigned char *arguments);

/* The worker runs the first operation of a stream that can go on, drawn. */
static void run(Stream *stream, Op *op) {
	switch (op->what) {
	case COPY:
		if ((op->host != 1 && !reach(op->from, op->bytes, stream->device)) || (op->host != 2 && !reach(op->to, op->bytes, stream->device))) {
			fail(stream->device);
			return;
		}
		memmove((void *)op->to, (void *)op->from, op->bytes);
		if (setting("FAKE_CUDA_CROSS", 0) && !op->host && device_at(op->to) != device_at(op->from)) ((char *)op->to)[op->bytes / 2] ^= 4;
		copies = setting("FAKE_CUDA_FLIP", 0) ? copies + (op->host == 1) : 0;
		if (op->host == 1 && copies && copies == setting("FAKE_CUDA_FLIP", 0)) ((char *)op->to)[op->bytes / 2] ^= 4;
		return;
	case FILL:
		if (!reach(op->to, op->bytes, stream->device)) {
			fail(stream->device);
			return;
		}
		memset((void *)op->to, op->value, op->bytes);
		if (setting("FAKE_CUDA_STAINS", 0)) ((char *)op->to)[op->bytes / 2] ^= 4;
		return;
	case WORD:
		*(int *)op->to = op->value;
		return;
	case RECORD: {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		op->event->ended = op->number;
		op->event->at = now.tv_sec * 1e3 + now.tv_nsec / 1e6;
		return;
	}
	case LAUNCH:
		run_kernel(stream->device, op->kernel, op->grid, op->arguments);
		free(op->arguments);
		return;
	case AWAIT:
		return;
	}
}

static const char *const kernels[KERNELS];

/* nowhere: a flag that is looked at where nothing is. */
static int nowhere(const unsigned char *arguments) { return *(const size_t *)arguments < 4096; }

static int hangs(const Op *op) {
	return op->what == LAUNCH && op->kernel == HANGS && !nowhere(op->arguments) && !**(volatile int **)op->arguments;
}

static void *work(void *unused) {
	(void)unused;
	pthread_mutex_lock(&lock);
	for (;;) {
		Stream *ready[STREAMS];
		unsigned count = 0;
		if (setting("FAKE_CUDA_HEALED", 0)) memset(faults, 0, sizeof faults), memset(lost, 0, sizeof lost);
		for (int i = 0; i < STREAMS; i++) {
			Op *op = streams[i] ? streams[i]->first : NULL;
			if (op && !lost[streams[i]->device] && !faults[streams[i]->device] && !hangs(op) && (op->what != AWAIT || op->event->ended >= op->number))
				ready[count++] = streams[i];
		}
		tell(!count);
		if (!count) {
			struct timespec until;
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += 1000000; /* a kernel that hangs may be let go */
			if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
			pthread_cond_timedwait(&moved, &lock, &until);
			continue;
		}
		Stream *stream = ready[draw(count)];
		Op *op = stream->first;
		run(stream, op);
		if (!(stream->first = op->next)) stream->last = &stream->first;
		free(op);
		pthread_cond_broadcast(&moved);
		if (!draw(4)) { /* now and then the host goes first */
			pthread_mutex_unlock(&lock);
			sched_yield();
			pthread_mutex_lock(&lock);
		}
	}
	return NULL;
}

#define BEGIN                               \
	pthread_mutex_lock(&lock);          \
	CUresult code = current ? (calls[current->device]++, (CUresult)faults[current->device]) : CUDA_SUCCESS
#define END                                 \
	pthread_cond_broadcast(&moved);     \
	pthread_mutex_unlock(&lock);        \
	return code

/* foreign: calls for a stream are made with its own GPU's context. That is more than
 * CUDA asks for, of copies. */
static int foreign(const Stream *stream) { return !current || current->device != stream->device; }

/* fails counts what needs memory from when the setting changed, and is true for the
 * one that is to find none. */
static int fails(void) {
	static long asked, last;
	long which = setting("FAKE_CUDA_FAIL", 0);
	if (which != last) asked = 0, last = which;
	return which && ++asked == which;
}

static Op *give(Stream *stream, int what) {
	Op *op = calloc(1, sizeof *op);
	op->what = what;
	Op ***last = stream->captured ? &stream->captured->last : &stream->last;
	**last = op;
	*last = &op->next;
	return op;
}

CUresult cuInit(unsigned int flags) {
	(void)flags;
	BEGIN;
	if (setting("FAKE_CUDA_GPUS", 1) == 0) code = CUDA_ERROR_NO_DEVICE;
	if (!started++) {
		drawn = setting("FAKE_CUDA_SEED", 1);
		pthread_create(&worker, NULL, work, NULL);
	}
	END;
}
CUresult cuDriverGetVersion(int *version) { *version = 11080; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult error, const char **text) {
	*text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
	      : error == CUDA_ERROR_DEVICE_UNAVAILABLE ? "CUDA_ERROR_DEVICE_UNAVAILABLE" : error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OF_THE_FAKE";
	return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
	(void)error;
	*text = "as the fake says";
	return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) { *count = (int)setting("FAKE_CUDA_GPUS", 1); return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	*device = ordinal;
	return ordinal < setting("FAKE_CUDA_GPUS", 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char *name, int size, CUdevice device) { snprintf(name, size, "Fake %d", device); return CUDA_SUCCESS; }
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { memset(uuid, 0x10 + device, sizeof *uuid); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) { *bytes = bytes_of(device); return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
	(void)device;
	*value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 132 : 0;
	return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
	*can = device != peer && reaches(device, peer);
	return CUDA_SUCCESS;
}
/* fakeUsed is what nvml.c says that this process holds: 0 without a context. */
size_t fakeUsed(int device) { return retained[device] ? ((size_t)3 << 20) + taken[device] + kept[device] : 0; }
/* tell_others tells the processes of the folder what this one holds now. */
static void tell_others(void) {
	unsigned long long used[GPUS];
	for (int i = 0; i < GPUS; i++) used[i] = fakeUsed(i);
	shared_tell(used, GPUS);
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	BEGIN;
	if (fails()) {
		code = CUDA_ERROR_OUT_OF_MEMORY;
		END;
	}
	if (setting("FAKE_CUDA_TAKEN", -1) == device) {
		code = CUDA_ERROR_DEVICE_UNAVAILABLE;
		END;
	}
	retained[device]++;
	contexts[device].device = device;
	*context = &contexts[device];
	tell_others();
	END;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
	BEGIN;
	if (--retained[device] < 0) code = CUDA_ERROR_INVALID_CONTEXT;
	if (!retained[device] && taken[device]) code = CUDA_ERROR_ILLEGAL_STATE; /* a real one would not tell */
	tell_others();
	END;
}
CUresult cuCtxSetCurrent(CUcontext context) { current = context; return CUDA_SUCCESS; }
CUresult cuMemGetInfo(size_t *room, size_t *total) {
	if (!current) return CUDA_ERROR_INVALID_CONTEXT;
	cuDeviceTotalMem(total, current->device);
	size_t used = taken[current->device] + kept[current->device] + shared_others(current->device);
	*room = *total - (used < *total ? used : *total);
	return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags) {
	(void)flags;
	BEGIN;
	if (!current) code = CUDA_ERROR_INVALID_CONTEXT;
	if (!code && (fails() || !(*address = malloc(bytes)))) code = CUDA_ERROR_OUT_OF_MEMORY;
	END;
}
CUresult cuMemFreeHost(void *address) { free(address); return CUDA_SUCCESS; }
CUresult cuMemHostRegister(void *address, size_t bytes, unsigned int flags) {
	(void)address, (void)flags;
	return !current ? CUDA_ERROR_INVALID_CONTEXT : setting("FAKE_CUDA_REGISTER", 1) && bytes ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMemHostUnregister(void *address) { (void)address; return CUDA_SUCCESS; }

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option) {
	(void)properties;
	(void)option;
	*bytes = GRANULE;
	return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags) {
	(void)alignment, (void)wanted, (void)flags;
	BEGIN;
	int i = 0;
	while (arenas[i].base) i++;
	void *base = bytes % GRANULE ? MAP_FAILED : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		code = CUDA_ERROR_INVALID_VALUE;
	else if (fails())
		code = CUDA_ERROR_OUT_OF_MEMORY, munmap(base, bytes);
	else
		arenas[i] = (Arena){base, bytes, 0, 0}, *address = (CUdeviceptr)base;
	END;
}
static Arena *at(CUdeviceptr address) {
	for (int i = 0; i < ARENAS; i++)
		if (arenas[i].base == (char *)address) return &arenas[i];
	return NULL;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
	BEGIN;
	Arena *arena = at(address);
	if (!arena || arena->handle || arena->bytes != bytes)
		code = CUDA_ERROR_INVALID_VALUE;
	else
		munmap(arena->base, bytes), *arena = (Arena){0};
	END;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags) {
	(void)flags;
	BEGIN;
	int device = properties->location.id, i = 1;
	size_t total;
	cuDeviceTotalMem(&total, device);
	while (handles[i].bytes) i++;
	if (fails() || taken[device] + kept[device] + shared_others(device) + bytes > total || (long)(taken[device] + bytes) > setting("FAKE_CUDA_FULL", 1l << 60))
		code = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!code)
		handles[i] = (Handle){device, bytes, 0, 0}, taken[device] += bytes, *handle = i;
	tell_others();
	END;
}
/* drop gives memory back that nobody has: neither a handle nor an address. */
static void drop(int handle) {
	static long dropped;
	if (!handles[handle].released || handles[handle].maps) return;
	taken[handles[handle].device] -= handles[handle].bytes;
	if (setting("FAKE_CUDA_KEEPS", 0) && ++dropped >= setting("FAKE_CUDA_KEEPS", 0)) kept[handles[handle].device] += GRANULE;
	handles[handle] = (Handle){0};
	tell_others();
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
	BEGIN;
	if (!handles[handle].bytes || handles[handle].released++)
		code = CUDA_ERROR_INVALID_VALUE;
	else
		drop((int)handle);
	END;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
	(void)flags;
	BEGIN;
	Arena *arena = at(address);
	if (!arena || arena->handle || arena->bytes != bytes || offset || handles[handle].bytes != bytes)
		code = CUDA_ERROR_INVALID_VALUE;
	else if (fails()) /* of a page table */
		code = CUDA_ERROR_OUT_OF_MEMORY;
	else
		arena->handle = (int)handle, handles[handle].maps++;
	END;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
	BEGIN;
	Arena *arena = at(address);
	if (!arena || !arena->handle || arena->bytes != bytes)
		code = CUDA_ERROR_INVALID_VALUE;
	else { /* what is mapped here next is other memory, of which nobody says what it holds */
		int handle = arena->handle;
		mprotect(arena->base, bytes, PROT_READ | PROT_WRITE), memset(arena->base, 0xA5, bytes), mprotect(arena->base, bytes, PROT_NONE);
		arena->handle = 0, arena->allowed = 0, handles[handle].maps--;
		drop(handle);
	}
	END;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count) {
	BEGIN;
	Arena *arena = at(address);
	int device = arena && arena->handle ? handles[arena->handle].device : 0;
	if (!arena || !arena->handle || arena->bytes != bytes || count != 1)
		code = CUDA_ERROR_INVALID_VALUE;
	else if (fails())
		code = CUDA_ERROR_OUT_OF_MEMORY;
	else if (access->location.id != device && (!reaches(access->location.id, device) || setting("FAKE_CUDA_DENIES", 0)))
		code = CUDA_ERROR_INVALID_DEVICE;
	else
		arena->allowed |= 1u << access->location.id, mprotect(arena->base, bytes, PROT_READ | PROT_WRITE);
	END;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
	(void)flags;
	BEGIN;
	int i = 0;
	if (getenv("FAKE_CUDA_KILLS")) kill(getpid(), SIGKILL); /* as the system does where memory is short */
	while (streams[i]) i++;
	if (!current) code = CUDA_ERROR_INVALID_CONTEXT;
	if (fails()) code = CUDA_ERROR_OUT_OF_MEMORY;
	if (!code) {
		*stream = streams[i] = calloc(1, sizeof(Stream));
		streams[i]->device = current->device;
		streams[i]->last = &streams[i]->first;
	}
	END;
}
static void drain(Stream *stream) {
	waits[stream->device]++;
	while ((stream->first || lost[stream->device]) && !faults[stream->device]) pthread_cond_wait(&moved, &lock);
	waits[stream->device]--;
}
CUresult cuStreamDestroy(CUstream stream) {
	BEGIN;
	drain(stream);
	for (int i = 0; i < STREAMS; i++)
		if (streams[i] == stream) streams[i] = NULL;
	free(stream);
	END;
}
CUresult cuStreamSynchronize(CUstream stream) {
	BEGIN;
	drain(stream);
	code = (CUresult)faults[stream->device];
	END;
}
CUresult cuCtxSynchronize(void) {
	BEGIN;
	for (int i = 0; i < STREAMS; i++)
		if (streams[i] && streams[i]->device == current->device) drain(streams[i]);
	code = (CUresult)faults[current->device];
	END;
}
CUresult cuEventCreate(CUevent *event, unsigned int flags) {
	(void)flags;
	BEGIN;
	if (!current) code = CUDA_ERROR_INVALID_CONTEXT;
	if (fails()) code = CUDA_ERROR_OUT_OF_MEMORY;
	if (!code) {
		*event = calloc(1, sizeof(Event));
		(*event)->device = current->device;
	}
	END;
}
CUresult cuEventDestroy(CUevent event) {
	BEGIN;
	waits[event->device]++;
	while (event->ended < event->recorded && !faults[event->device]) pthread_cond_wait(&moved, &lock);
	waits[event->device]--;
	free(event);
	END;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
	BEGIN;
	if (event->device != stream->device || foreign(stream)) {
		code = CUDA_ERROR_INVALID_HANDLE;
	} else {
		Op *op = give(stream, RECORD);
		op->event = event;
		op->number = ++event->recorded;
	}
	END;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
	(void)flags;
	BEGIN;
	Op *op = give(stream, AWAIT); /* of one never recorded: nothing, as on a GPU */
	op->event = event;
	op->number = event->recorded;
	END;
}
CUresult cuEventQuery(CUevent event) {
	BEGIN;
	if (!code) code = (CUresult)faults[event->device];
	if (!code && event->ended < event->recorded) code = CUDA_ERROR_NOT_READY;
	END;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
	*milliseconds = (float)(end->at - begin->at);
	return CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream, int host) {
	BEGIN;
	if (foreign(stream)) {
		code = CUDA_ERROR_INVALID_HANDLE;
	} else {
		Op *op = give(stream, COPY);
		op->to = to, op->from = from, op->bytes = bytes, op->host = host;
	}
	END;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) { return copy(to, (CUdeviceptr)from, bytes, stream, 1); }
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) { return copy((CUdeviceptr)to, from, bytes, stream, 2); }
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) { return copy(to, from, bytes, stream, 0); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
	BEGIN;
	if (foreign(stream)) {
		code = CUDA_ERROR_INVALID_HANDLE;
	} else {
		Op *op = give(stream, FILL);
		op->to = to, op->bytes = count, op->value = value;
	}
	END;
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
	BEGIN;
	if (foreign(stream) || count != 1) {
		code = CUDA_ERROR_INVALID_HANDLE;
	} else {
		Op *op = give(stream, WORD);
		op->to = to, op->bytes = 4, op->value = (int)value;
	}
	END;
}

/* A map has what it was given, one number after another, and its own place is a multiple of 64. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill outside) {
	if ((uintptr_t)map % 64 || rank != 4 || type != 9 || interleave || swizzle != 3 || promotion != 2 || outside || (uintptr_t)at % 16)
		return CUDA_ERROR_INVALID_VALUE;
	map->opaque[0] = (uintptr_t)at;
	for (int i = 0; i < 4; i++) {
		map->opaque[1 + i] = sizes[i], map->opaque[8 + i] = box[i], map->opaque[12 + i] = steps[i];
		if (i < 3) map->opaque[5 + i] = strides[i];
	}
	return CUDA_SUCCESS;
}

/* A graph is the operations that a stream was given during a capture. Launched, it
 * gives them once more. */
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
	BEGIN;
	if (foreign(stream) || stream->captured || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
		code = CUDA_ERROR_INVALID_HANDLE;
	} else {
		stream->captured = calloc(1, sizeof(struct CUgraph_st));
		stream->captured->last = &stream->captured->first;
	}
	END;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
	BEGIN;
	if (!stream->captured) code = CUDA_ERROR_INVALID_HANDLE;
	*graph = stream->captured;
	stream->captured = NULL;
	END;
}
static void again(const Op *from, struct CUgraph_st *to) {
	for (; from; from = from->next) {
		Op *op = malloc(sizeof *op);
		*op = *from;
		op->next = NULL;
		if (op->arguments) op->arguments = memcpy(malloc(sizeof(Mix)), op->arguments, sizeof(Mix));
		*to->last = op;
		to->last = &op->next;
	}
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *graph, CUgraph from, unsigned long long flags) {
	(void)flags;
	BEGIN;
	if (fails()) {
		code = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		struct CUgraph_st *made = calloc(1, sizeof *made);
		made->last = &made->first;
		again(from->first, made);
		*graph = (CUgraphExec)made;
	}
	END;
}
CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
	(void)graph;
	BEGIN;
	if (foreign(stream)) code = CUDA_ERROR_INVALID_HANDLE;
	END;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
	BEGIN;
	if (foreign(stream)) {
		code = CUDA_ERROR_INVALID_HANDLE;
	} else {
		struct CUgraph_st all = {stream->first, stream->last};
		if (!all.first) all.last = &all.first;
		again(((struct CUgraph_st *)graph)->first, &all);
		stream->first = all.first;
		stream->last = all.first ? all.last : &stream->first;
		if (all.last == &all.first) stream->last = &stream->first;
	}
	END;
}
CUresult cuGraphDestroy(CUgraph graph) {
	while (graph->first) {
		Op *op = graph->first;
		graph->first = op->next;
		free(op->arguments);
		free(op);
	}
	free(graph);
	return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) { return cuGraphDestroy((CUgraph)graph); }

/* A module is its PTX. */
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
	BEGIN;
	if (fails() || !(*module = (CUmodule)strdup(image))) code = CUDA_ERROR_OUT_OF_MEMORY;
	END;
}
CUresult cuModuleUnload(CUmodule module) {
	free(module);
	return CUDA_SUCCESS;
}
/* A variable is a page of the host's, which kernels reach. */
CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
	static char variable[1 << 16];
	if (!strstr((const char *)module, name)) return CUDA_ERROR_NOT_FOUND;
	*address = (CUdeviceptr)variable, *bytes = sizeof variable;
	return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
	(void)function, (void)attribute, (void)value;
	return CUDA_SUCCESS;
}

/* mix makes bytes out of all that it reads and of a seed, so that of whatever went
 * another way others come out: FNV-1a over the seed and what is read, and then at
 * every eighth byte that is written the sum of it and the byte's place. Modes are
 * 0 read, 1 written, 2 both. */

static void mix(int device, const Mix *of) {
	unsigned long long hash = 14695981039346656037ull;
	for (int i = 0; i < 8; i++) hash = (hash ^ (of->seed >> 8 * i & 255)) * 1099511628211ull;
	for (unsigned long long i = 0; i < of->count; i++) {
		if (!reach(of->at[i], of->bytes[i], device)) {
			fail(device);
			return;
		}
		for (size_t j = 0; of->modes[i] != 1 && j < of->bytes[i]; j++)
			hash = (hash ^ ((unsigned char *)of->at[i])[j]) * 1099511628211ull;
	}
	for (unsigned long long i = 0; i < of->count; i++)
		for (size_t j = 0; of->modes[i] && j < of->bytes[i]; j += 8)
			((unsigned long long *)of->at[i])[j / 8] = hash + j;
}

typedef struct { unsigned long long from, to; unsigned int count; } Total;

static void total(int device, const Total *of) {
	double sum = 0;
	if (!reach(of->from, 4 * of->count, device) || !reach(of->to, 4, device)) {
		fail(device);
		return;
	}
	for (unsigned i = 0; i < of->count; i++) sum += ((float *)of->from)[i];
	*(float *)of->to = (float)sum;
}

typedef struct { unsigned long long from, bytes, sums; } Checksum;

static void checksum(int device, unsigned grid, const Checksum *of) {
	unsigned long long skip = of->from % 8, *sums = (void *)of->sums;
	if (!reach(of->from, of->bytes, device)) {
		fail(device);
		return;
	}
	memset(sums, 0, 16 * grid);
	for (unsigned long long i = 0; i < of->bytes; i++) { /* a byte is a word of its own, shifted */
		unsigned long long word = (skip + i) / 8, value = (unsigned long long)((unsigned char *)of->from)[i] << (skip + i) % 8 * 8;
		sums[word % grid * 2] += value;
		sums[word % grid * 2 + 1] += (word + 1) * value;
	}
}

typedef struct { unsigned long long to, words, first, step; } Pattern;

static void pattern(int device, const Pattern *of) {
	if (!reach(of->to, 8 * of->words, device)) {
		fail(device);
		return;
	}
	for (unsigned long long i = 0; i < of->words; i++) ((unsigned long long *)of->to)[i] = of->first + i * of->step;
	if (setting("FAKE_CUDA_FORGETS", 0) == 1 && of->words) ((char *)of->to)[4 * of->words] ^= 4;
	if (setting("FAKE_CUDA_FORGETS", 0) == 2 && 8 * of->words > GRANULE) memmove((char *)of->to, (char *)of->to + 8 * of->words - GRANULE, GRANULE);
}

static const char *const kernels[KERNELS] = {"mix", "total", "hang", "checksum", "pattern"};
static struct CUfunc_st functions[KERNELS] = {{0}, {1}, {HANGS}, {3}, {4}}, nothing = {-1};

/* An entry of the PTX that is not known here is found, and does nothing. */
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
	for (int i = 0; i < KERNELS; i++)
		if (kernels[i] && !strcmp(kernels[i], name)) {
			*function = &functions[i];
			return CUDA_SUCCESS;
		}
	char entry[128];
	snprintf(entry, sizeof entry, ".entry %s(", name);
	*function = &nothing;
	return strstr((const char *)module, entry) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ, unsigned int blockX, unsigned int blockY,
                        unsigned int blockZ, unsigned int shared, CUstream stream, void **arguments, void **extra) {
	(void)gridY, (void)gridZ, (void)blockX, (void)blockY, (void)blockZ, (void)shared, (void)arguments;
	BEGIN;
	size_t bytes = *(size_t *)extra[3];
	Op *op = give(stream, LAUNCH);
	op->kernel = function->kernel;
	op->grid = gridX;
	op->arguments = calloc(1, sizeof(Mix));
	memcpy(op->arguments, extra[1], bytes < sizeof(Mix) ? bytes : sizeof(Mix));
	END;
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ, unsigned int blockX, unsigned int blockY,
                                   unsigned int blockZ, unsigned int shared, CUstream stream, void **arguments) {
	(void)gridY, (void)gridZ, (void)blockX, (void)blockY, (void)blockZ, (void)shared, (void)arguments, (void)stream;
	BEGIN;
	if (function->kernel >= 0 || gridX == 0) code = CUDA_ERROR_INVALID_VALUE; /* it has none of its own */
	END;
}
static void run_kernel(int device, int kernel, unsigned grid, unsigned char *arguments) {
	if (kernel == 0) mix(device, (Mix *)arguments);
	if (kernel == HANGS && nowhere(arguments)) fail(device);
	if (kernel == 1) total(device, (Total *)arguments);
	if (kernel == 3) checksum(device, grid, (Checksum *)arguments);
	if (kernel == 4) pattern(device, (Pattern *)arguments);
}
