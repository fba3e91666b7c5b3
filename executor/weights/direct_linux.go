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

// openDirect opens the file once for reads that bypass the page cache, unless the cache has all of it. It
// is the same file, whatever has its name now. Such reads need a file system that has them, and a
// kernel that reports what the page cache has (Linux 6.5). Otherwise the file is read through the
// cache.
func (file *openFile) openDirect(disk *disk) {
	if file.disk != nil {
		return
	}
	file.disk = disk
	found, known := 0, true
	for i := int64(0); i < samples && known; i++ {
		var has bool
		has, known = file.cached(file.was.size / (2 * samples) * (2*i + 1))
		if has {
			found++
		}
	}
	if !known || found == samples {
		return
	}
	file.cold = found == 0
	direct, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", file.handle.Fd()), os.O_RDONLY|unix.O_DIRECT, 0)
	if err == nil {
		file.direct = direct
	}
}

// samples is how many pages of a file are looked up in the page cache. To look up all of them takes 7 %
// of the time of reading them from it.
const samples = 64

// cached reports whether the page cache has the page of a byte of the file.
func (file *openFile) cached(at int64) (has, known bool) {
	var stat unix.Cachestat_t
	err := unix.Cachestat(uint(file.handle.Fd()), &unix.CachestatRange{Off: uint64(at), Len: 1}, &stat, 0)
	return stat.Cache > 0, err == nil
}

// readAt is like [os.File.ReadAt]. If the page cache lacks the last page, all of it comes from the disk.
// Of a file that it lacks, everything does: a read through the cache would have the system read ahead,
// and pages that are still on their way count as cached.
func (file *openFile) readAt(raw []byte, at int64) (int, error) {
	if file.direct == nil || len(raw) == 0 {
		return file.handle.ReadAt(raw, at)
	}
	if !file.cold {
		if has, _ := file.cached(at + int64(len(raw)) - 1); has {
			return file.handle.ReadAt(raw, at)
		}
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
