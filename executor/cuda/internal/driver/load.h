#ifndef DEVMAP_LOAD_H
#define DEVMAP_LOAD_H

/* Errors of driver_open; 0 is success. */
enum { DRIVER_NO_LIBRARY = 1, DRIVER_NO_SYMBOL = 2 };

/* driver_open fills the table from the library at path. It writes why it could not
 * into text, which has room for size bytes. needed ends with NULL. */
int driver_open(const char *path, const char *const *needed, char *text, int size);
int driver_init(void);
int driver_count(void);
const char *driver_name(int index);
int driver_present(int index);

#endif
