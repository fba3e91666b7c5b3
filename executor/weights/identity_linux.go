package weights

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// identity shows whether a file is the same and was not written to. A change of its content changes
// ctime, which no call sets back.
type identity struct {
	device, inode uint64
	size          int64
	mtime, ctime  syscall.Timespec
}

func identify(info fs.FileInfo) identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{size: info.Size(), mtime: syscall.NsecToTimespec(info.ModTime().UnixNano())}
	}
	return identity{stat.Dev, stat.Ino, stat.Size, stat.Mtim, stat.Ctim}
}

func (file identity) sameDevice(other identity) bool { return file.device == other.device }

// String describes the file for an error.
func (file identity) String() string {
	return fmt.Sprintf("inode %d of %d bytes, changed %s", file.inode, file.size, time.Unix(file.ctime.Unix()).UTC().Format("2006-01-02 15:04:05.000000000"))
}
