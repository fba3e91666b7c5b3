package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// File is a safetensors file that is being written. It has no name before Commit, so that nothing
// remains if the process ends. If the file system has no files without a name, it has a temporary
// one, which remains after a kill only. WriteAt may be called by several goroutines.
type File struct {
	target string
	handle *os.File
	// temporary is the name that the file already has, or empty.
	temporary string
	tensors   map[string]*safetensors.Tensor
	// helpers are the other files of the folder that is made with the file.
	helpers []smallFile

	mutex   sync.Mutex
	written map[string]int64
}

// Create makes a file that appears at path when it is committed, and replaces a file that is there.
// Its tensors are in the order of entries. Disk space is reserved at once if the file system can.
func Create(path string, metadata map[string]string, entries []Entry) (*File, error) {
	target, mode, err := targetOf(path)
	if err != nil {
		return nil, err
	}
	return create(target, filepath.Dir(target), mode, metadata, entries)
}

// targetOf returns the file to replace, which is the target of a link, and its permissions.
func targetOf(path string) (string, fs.FileMode, error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", 0, fmt.Errorf("%s: a link to nothing: want a file", path)
		}
		return path, 0o666, nil // less the umask
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, withoutName(err))
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return "", 0, err
	case !info.Mode().IsRegular():
		return "", 0, fmt.Errorf("%s: %v: want a regular file, which is written at any place of it", path, info.Mode().Type())
	}
	return target, info.Mode().Perm(), nil
}

func create(target, folder string, mode fs.FileMode, metadata map[string]string, entries []Entry) (*File, error) {
	tensors := make([]safetensors.Tensor, len(entries))
	for i, entry := range entries {
		tensors[i] = safetensors.Tensor{Name: entry.Name, DType: entry.DType, Shape: entry.Shape}
	}
	head, err := safetensors.Encode(metadata, tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	file := &File{target: target, tensors: make(map[string]*safetensors.Tensor), written: make(map[string]int64)}
	size := int64(len(head))
	for i := range tensors {
		file.tensors[tensors[i].Name], size = &tensors[i], tensors[i].End
	}
	if file.handle, file.temporary, err = openUnnamed(folder, mode); err != nil {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	if _, err = file.handle.WriteAt(head, 0); err == nil {
		err = reserve(file.handle, size)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target, errors.Join(withoutName(err), file.Discard()))
	}
	return file, nil
}

// WriteAt writes bytes of an entry, from an offset in it on. Every byte of every entry must be
// written once.
func (file *File) WriteAt(entry string, offset int64, data []byte) error {
	tensor := file.tensors[entry]
	if tensor == nil {
		return fmt.Errorf("%s: there is no %q in it", file.target, entry)
	}
	end := offset + int64(len(data))
	if offset < 0 || end > tensor.Bytes() {
		return fmt.Errorf("%s: bytes %d to %d of %q, which has %d", file.target, offset, end, entry, tensor.Bytes())
	}
	if _, err := file.handle.WriteAt(data, tensor.Begin+offset); err != nil {
		return fmt.Errorf("%s: %w", file.target, withoutName(err))
	}
	file.mutex.Lock()
	defer file.mutex.Unlock()
	file.written[entry] += int64(len(data))
	return nil
}

// Commit makes the file appear, with the other files of its folder. If bytes of an entry are
// missing, it returns an error and nothing appears.
func (file *File) Commit() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", file.target, errors.Join(withoutName(err), file.Discard()))
		}
	}()
	for name, tensor := range file.tensors {
		if written := file.written[name]; written != tensor.Bytes() {
			return fmt.Errorf("%d of the %d bytes of %q were written", written, tensor.Bytes(), name)
		}
	}
	if err := file.handle.Sync(); err != nil {
		return err
	}
	if file.helpers != nil {
		err = file.appearIn()
	} else {
		err = file.appearAs(file.target)
	}
	return errors.Join(err, file.close())
}

// appearAs gives the file its name, and replaces a file that has it.
func (file *File) appearAs(target string) error {
	if file.temporary == "" {
		err := name(file.handle, target)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		// No call replaces a name by a file without one: between two calls it has a temporary name.
		file.temporary = ownName(filepath.Dir(target))
		if err := name(file.handle, file.temporary); err != nil {
			file.temporary = ""
			return err
		}
	}
	if err := os.Rename(file.temporary, target); err != nil {
		return err
	}
	file.temporary = ""
	return syncFolder(filepath.Dir(target))
}

// Discard drops the file. It does nothing after a Commit or a Discard.
func (file *File) Discard() error {
	if file.handle == nil {
		return nil
	}
	err := file.close()
	if file.temporary != "" {
		err = errors.Join(err, os.Remove(file.temporary))
	}
	return err
}

func (file *File) close() error {
	handle := file.handle
	if file.handle = nil; handle == nil {
		return nil
	}
	return handle.Close()
}

// serialised returns entries in the order of safetensors: wide types first, so that every value is
// aligned, then by name (tensor.rs: prepare).
func serialised(entries []Entry) []Entry {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(one, other Entry) int {
		if one.DType != other.DType {
			return int(other.DType) - int(one.DType)
		}
		switch {
		case one.Name < other.Name:
			return -1
		case one.Name > other.Name:
			return 1
		}
		return 0
	})
	return sorted
}
