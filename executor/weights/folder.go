package weights

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// smallFile is a small file in the folder of a large one.
type smallFile struct {
	name string
	data []byte
}

// vacant returns the folder to save in, which is the target of a link. It returns an error if that
// is not empty or cannot be made.
func vacant(folder string) (string, error) {
	target, err := filepath.EvalSymlinks(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(folder); err == nil {
			return "", fmt.Errorf("%s: %w: a link to nothing", folder, ErrOccupied)
		}
		return filepath.Clean(folder), nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", folder, withoutName(err))
	}
	entries, err := os.ReadDir(target)
	switch {
	case errors.As(err, new(*fs.PathError)) && !isFolder(target):
		return "", fmt.Errorf("%s: %w: no folder", folder, ErrOccupied)
	case err != nil:
		return "", err
	case len(entries) > 0:
		return "", fmt.Errorf("%s: %w: it holds %q", folder, ErrOccupied, entries[0].Name())
	case mounted(target):
		return "", fmt.Errorf("%s: %w that could be replaced: something is mounted there: name a folder in it", folder, ErrOccupied)
	}
	return target, nil
}

// mounted reports whether a folder is on another device than its parent.
func mounted(path string) bool {
	own, err := os.Stat(path)
	above, wrong := os.Stat(filepath.Dir(path))
	return err == nil && wrong == nil && !identify(own).sameDevice(identify(above))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// createIn makes a file that appears in a folder of its own, with small files. The file has no name
// while it is written. When everything is there, a folder is made, filled and renamed in a moment.
func createIn(folder, name string, metadata map[string]string, entries []Entry, small []smallFile) (*File, error) {
	target, err := vacant(folder)
	if err != nil {
		return nil, err
	}
	file, err := create(filepath.Join(target, name), filepath.Dir(target), 0o666, metadata, serialised(entries))
	if err != nil {
		return nil, err
	}
	file.helpers = small
	return file, nil
}

// appearIn makes the folder of the file appear.
func (file *File) appearIn() (err error) {
	folder, base := filepath.Split(file.target)
	folder = filepath.Clean(folder)
	made := ownName(filepath.Dir(folder))
	if err := os.Mkdir(made, 0o777); err != nil { // less the umask
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	for _, small := range file.helpers {
		if err := writeSynced(filepath.Join(made, small.name), small.data); err != nil {
			return err
		}
	}
	if err := file.appearAs(filepath.Join(made, base)); err != nil {
		return err
	}
	if err := syncFolder(made); err != nil {
		return err
	}
	// This replaces an empty folder too, which os.Rename refuses.
	if err := syscall.Rename(made, folder); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(folder))
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncFolder makes names survive a power failure, if folders can be synced at all.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = folder.Sync() // some file systems have no such thing
	return folder.Close()
}

// ownName returns a name that nothing else has.
func ownName(folder string) string { return filepath.Join(folder, ".devmap-"+rand.Text()) }

func openNamed(folder string, mode fs.FileMode) (handle *os.File, temporary string, err error) {
	temporary = ownName(folder)
	handle, err = os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	return handle, temporary, err
}

// withoutName removes names from the error of a file operation: a temporary one says nothing to a
// user.
func withoutName(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
