"""disk.py FILE: bytes a second of parallel direct reads of a file: what its disk gives without the page cache."""

import concurrent.futures
import mmap
import os
import sys
import time

PIECE, READERS = 1 << 20, 16


def read(handle, begins):
    room = mmap.mmap(-1, PIECE)  # begins at a page
    return sum(os.preadv(handle, [room], at) for at in begins)


def main():
    handle = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
    begins = range(0, os.fstat(handle).st_size, PIECE)
    begun = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        found = sum(pool.map(lambda number: read(handle, begins[number::READERS]), range(READERS)))
    print(found / (time.perf_counter() - begun))


if __name__ == "__main__":
    main()
