/* What processes on GPUs that are none tell each other: with FAKE_CUDA_SHARED each has a
 * file there, its number, with the bytes that it holds of each GPU. What a process holds
 * is gone with it. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* bytes_of is what a GPU has: the last figure is that of all behind it. */
static inline unsigned long long bytes_of(int device) {
	const char *text = getenv("FAKE_CUDA_BYTES"), *next;
	for (; text && device && (next = strchr(text, ',')); device--) text = next + 1;
	return text && *text ? strtoul(text, NULL, 10) : 1ul << 30;
}

static inline void shared_tell(const unsigned long long *used, int gpus) {
	const char *folder = getenv("FAKE_CUDA_SHARED");
	char path[4096], made[4096 + 8];
	if (!folder || access(folder, W_OK)) return;
	snprintf(path, sizeof path, "%s/%d", folder, getpid());
	snprintf(made, sizeof made, "%s.made", path);
	FILE *file = fopen(made, "w");
	for (int i = 0; file && i < gpus; i++) fprintf(file, "%llu ", used[i]);
	if (file) fclose(file);
	rename(made, path);
}

/* shared_each hands on what each process that is alive holds of a GPU, this one too. */
static inline void shared_each(int device, void (*each)(void *into, int process, unsigned long long used), void *into) {
	const char *name = getenv("FAKE_CUDA_SHARED");
	DIR *folder = name ? opendir(name) : 0;
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		char path[4096 + 256], *end;
		long process = strtol(entry->d_name, &end, 10);
		if (*end || process <= 0 || kill((pid_t)process, 0)) continue;
		snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
		FILE *file = fopen(path, "r");
		unsigned long long used = 0;
		for (int i = 0; file && i <= device && fscanf(file, "%llu", &used) == 1; i++)
			if (i == device && used) each(into, (int)process, used);
		if (file) fclose(file);
	}
	if (folder) closedir(folder);
}

static void shared_add(void *into, int process, unsigned long long used) {
	if (process != getpid()) *(unsigned long long *)into += used;
}

/* shared_others is what other processes hold of a GPU. */
static inline size_t shared_others(int device) {
	unsigned long long sum = 0;
	shared_each(device, shared_add, &sum);
	return sum;
}
