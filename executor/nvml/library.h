// Layouts and numbers of the NVML API reference.
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;
enum { INSUFFICIENT_SIZE = 7 };

// open_library fills the table of functions. It writes why it could not, or what is
// missing.
int open_library(const char *path, char *text, int size);

int call_init(void);
int call_shutdown(void);
const char *call_error(int code);
int call_driver(char *text, unsigned size);
int call_count(unsigned *count);
int call_index(unsigned index, void **device);
int call_uuid(void *device, char *text, unsigned size);
int call_name(void *device, char *text, unsigned size);
int has_reserved(void);
int call_memory(void *device, Memory *memory);
int call_processes(void *device, unsigned *count, Process *all);
int call_mig(void *device, unsigned *now);

// A follower reads what GPUs hold by a thread of its own: when, in nanoseconds since
// it began, and used bytes of each GPU. take moves the readings out, and is -1 where
// none can be read any more, of which code says why; end waits for the thread.
typedef struct Follower Follower;
Follower *follow_begin(void **devices, unsigned count, long long every);
int follow_take(Follower *follower, long long *when, unsigned long long *used, unsigned most, int *code);
void follow_end(Follower *follower);
