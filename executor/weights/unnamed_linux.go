package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a file in a folder that has no name there (open(2): O_TMPFILE). If the file
// system has no such files, it has a temporary name.
func openUnnamed(folder string, mode fs.FileMode) (handle *os.File, temporary string, err error) {
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, uint32(mode.Perm()))
		if err == nil {
			return os.NewFile(uintptr(fd), folder), "", nil
		}
		// Old kernels and some file systems return these errors for a flag that they do not know.
		// Any other error would occur with a named file too.
		if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EINVAL) {
			return nil, "", err
		}
	}
	return openNamed(folder, mode)
}

// name gives an unnamed file a name that nothing has. The way over /proc needs no privilege
// (open(2), "O_TMPFILE").
func name(handle *os.File, path string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", handle.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// reserve gives a file its size and reserves the disk space if the file system can: a full disk
// shows before anything is computed.
func reserve(handle *os.File, size int64) error {
	err := unix.Fallocate(int(handle.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || size == 0 {
		return handle.Truncate(size)
	}
	return err
}
