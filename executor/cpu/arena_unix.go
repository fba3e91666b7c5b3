//go:build unix

package cpu

import (
	"golang.org/x/sys/unix"
)

// reserve maps zeroed pages outside of Go's heap. The garbage collector does not scan them, and
// their size triggers no collection.
func reserve(size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, unix.ENOMEM
	}
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func release(arena []byte) error { return unix.Munmap(arena) }
