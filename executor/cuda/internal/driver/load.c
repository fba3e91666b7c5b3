//go:build cuda && linux && cgo && amd64

#define _GNU_SOURCE
#include "load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The table behind the trampolines, in the order of symbols.h. */
extern void *driver_slots[] __attribute__((visibility("hidden")));

static const char *const names[] = {
#define X(name) #name,
#include "symbols.h"
#undef X
};

enum {
#define X(name) INDEX_##name,
#include "symbols.h"
#undef X
	COUNT
};

static unsigned char present[COUNT];

/* CUresult by the manual: success, not initialised, symbol not found. */
enum { SUCCESS = 0, NOT_INITIALIZED = 3, SYMBOL_NOT_FOUND = 302 };

__attribute__((visibility("hidden"))) int driver_unopened(void) { return NOT_INITIALIZED; }

static int missing(void) { return SYMBOL_NOT_FOUND; }

/* cu's package initialisation calls cuInit, and os.Exit where that fails: until a
 * driver is open it does nothing, well. */
static int postponed(unsigned flags) {
	(void)flags;
	return SUCCESS;
}

__attribute__((constructor)) static void postpone(void) { driver_slots[INDEX_cuInit] = (void *)postponed; }

int driver_open(const char *path, const char *const *needed, char *text, int size) {
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		snprintf(text, size, "%s", dlerror());
		return DRIVER_NO_LIBRARY;
	}
	for (; *needed; needed++) {
		if (!dlsym(library, *needed)) {
			snprintf(text, size, "%s", *needed);
			dlclose(library);
			return DRIVER_NO_SYMBOL;
		}
	}
	for (int i = 0; i < COUNT; i++) {
		void *found = dlsym(library, names[i]);
		present[i] = found != NULL;
		driver_slots[i] = found ? found : (void *)missing;
	}
	return 0;
}

int driver_init(void) { return ((int (*)(unsigned))driver_slots[INDEX_cuInit])(0); }
int driver_count(void) { return COUNT; }
const char *driver_name(int index) { return names[index]; }
int driver_present(int index) { return present[index]; }
