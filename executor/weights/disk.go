package weights

import (
	"sync"
	"time"
)

// disk counts the bytes of a source's direct reads, and times them.
type disk struct {
	mutex      sync.Mutex
	bytes      int64
	begin, end time.Time // of the first, and of the last
}

// read adds a read that has just ended.
func (disk *disk) read(bytes int64, begin time.Time) {
	end := time.Now()
	disk.mutex.Lock()
	defer disk.mutex.Unlock()
	if disk.begin.IsZero() || begin.Before(disk.begin) {
		disk.begin = begin
	}
	disk.bytes, disk.end = disk.bytes+bytes, end
}

// Disk implements [Ranged].
func (source *stored) Disk() (bytes int64, seconds float64) {
	source.disk.mutex.Lock()
	defer source.disk.mutex.Unlock()
	return source.disk.bytes, source.disk.end.Sub(source.disk.begin).Seconds()
}

// Disk implements [Ranged]: random values come from no file.
func (*random) Disk() (bytes int64, seconds float64) { return 0, 0 }
