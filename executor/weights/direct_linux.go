package weights

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diskBlock is the unit of direct reads, in the file and in memory: a page, and no less than a block
// of most disks.
const diskBlock = 4096

// openDirect opens the file once for reads that bypass the page cache, if the cache has less than half
// of it. It is the same file, whatever has its name now. Such reads need a file system that has them,
// and a kernel that reports what the page cache has (Linux 6.5). Other files are read through the
// cache.
func (file *openFile) openDirect(disk *disk) {
	if file.disk != nil {
		return
	}
	file.disk = disk
	const samples = 64 // to look up all pages takes 7 % of the time of reading them from the cache
	found := uint64(0)
	for i := range uint64(samples) {
		var stat unix.Cachestat_t
		page := unix.CachestatRange{Off: uint64(file.was.size) / (2 * samples) * (2*i + 1), Len: 1}
		if err := unix.Cachestat(uint(file.handle.Fd()), &page, &stat, 0); err != nil {
			return
		}
		found += stat.Cache
	}
	if found >= samples/2 {
		return
	}
	direct, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", file.handle.Fd()), os.O_RDONLY|unix.O_DIRECT, 0)
	if err == nil {
		file.direct = direct
	}
}

// readAt is like [os.File.ReadAt]. It never mixes both kinds of reads: one through the cache has the
// system read ahead, and the cache counts pages that are still on their way.
func (file *openFile) readAt(raw []byte, at int64) (int, error) {
	if file.direct == nil {
		return file.handle.ReadAt(raw, at)
	}
	begin := time.Now()
	skip := at % diskBlock
	buffer, _ := blocks.Get().(*[]byte)
	defer blocks.Put(buffer)
	size := (skip + int64(len(raw)) + diskBlock - 1) / diskBlock * diskBlock
	if int64(len(*buffer)) < size+diskBlock {
		*buffer = make([]byte, size+diskBlock)
	}
	aligned := (*buffer)[-uintptr(unsafe.Pointer(unsafe.SliceData(*buffer)))%diskBlock:][:size] //nolint:gosec // the address, for its remainder
	count, err := file.direct.ReadAt(aligned, at-skip)
	if errors.Is(err, unix.EINVAL) { // a disk with larger blocks
		return file.handle.ReadAt(raw, at)
	}
	count = copy(raw, aligned[min(int(skip), count):count])
	if count == len(raw) {
		err = nil
	}
	file.disk.read(int64(count), begin)
	return count, err
}

// blocks are buffers of direct reads.
var blocks = sync.Pool{New: func() any { return new([]byte) }}
