package gguf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/devmap-dev/devmap/modelgraph"
)

// File is the content of a GGUF file, or of all files of a set.
type File struct {
	Path         string // as given
	Architecture string // general.architecture
	// Tensors have their shapes as in a graph, the length of a row last, and one part, with file
	// and place.
	Tensors []modelgraph.Tensor

	values map[string]value
}

// opener opens a regular file for reading, and returns its size.
type opener func(path string) (file *os.File, size int64, err error)

// maxFiles bounds the files of a set, far above published ones.
const maxFiles = 1024

// setName is the name of a file of a set (llama.cpp: llama_split_path).
var setName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// Read reads the headers of a file, and of the other files of its set. The path must be that of the
// first file, which alone has all metadata. Errors in a file are [*modelgraph.SyntaxError].
func Read(path string, open func(path string) (file *os.File, size int64, err error)) (*File, error) {
	first, err := readFile(path, open)
	if err != nil {
		return nil, err
	}
	file := &File{Path: path, Tensors: first.tensors, values: first.values}
	if number := file.Number("split.no", 0); number != 0 {
		return nil, file.fault("split.no", "this is file %d of a set: give the first one%s", number+1, nameOf(path, 1))
	}
	file.Architecture = file.Text("general.architecture")
	if file.Architecture == "" {
		return nil, file.fault("general.architecture", "it is missing, or is no text")
	}
	count := file.Number("split.count", 0)
	if count > maxFiles {
		return nil, file.fault("split.count", "%d files are more than %d", count, maxFiles)
	}
	for index := int64(1); index < count; index++ {
		if err := file.add(index, count, open); err != nil {
			return nil, err
		}
	}
	if total := file.Number("split.tensors.count", int64(len(file.Tensors))); total != int64(len(file.Tensors)) {
		return nil, file.fault("split.tensors.count", "it is %d, and the files have %d tensors", total, len(file.Tensors))
	}
	if len(file.Tensors) == 0 {
		return nil, file.fault("", "it has no tensors (a vocabulary alone?)")
	}
	return file, repeated(file.Tensors)
}

func (file *File) fault(place, format string, args ...any) error {
	return &modelgraph.SyntaxError{File: file.Path, Place: place, Msg: fmt.Sprintf(format, args...)}
}

// readFile reads one header.
func readFile(path string, open opener) (*header, error) {
	from, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // opened for reading
	return readHeader(path, from, size)
}

// add reads another file of the set.
func (file *File) add(index, count int64, open opener) error {
	parts := setName.FindStringSubmatch(filepath.Base(file.Path))
	if len(parts) == 0 || parts[2] != "00001" || parts[3] != fmt.Sprintf("%05d", count) {
		return file.fault("split.count", "it is the first of %d files, whose name must end in -00001-of-%05d.gguf", count, count)
	}
	path := filepath.Join(filepath.Dir(file.Path), fmt.Sprintf("%s-%05d-of-%05d.gguf", parts[1], index+1, count))
	head, err := readFile(path, open)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: a file of the set is missing, which has %d: %w", path, count, fs.ErrNotExist)
	case err != nil:
		return err
	}
	other := &File{Path: path, values: head.values}
	if number := other.Number("split.no", -1); number != index {
		return other.fault("split.no", "it is %d, and the file's name says %d: files of two sets are mixed", number, index)
	}
	if its := other.Number("split.count", -1); its != count {
		return other.fault("split.count", "it is %d, and that of the first file is %d: files of two sets are mixed", its, count)
	}
	file.Tensors = append(file.Tensors, head.tensors...)
	return nil
}

// nameOf is the name of a file of a set with another number, for an error; empty if the
// path is not of the usual form.
func nameOf(path string, number int) string {
	parts := setName.FindStringSubmatch(filepath.Base(path))
	if parts == nil {
		return ""
	}
	return ", " + quoted(filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%s.gguf", parts[1], number, parts[3])))
}

// Is reports whether data begins as GGUF files do.
func Is(data io.ReaderAt) bool {
	var magic [4]byte
	count, _ := data.ReadAt(magic[:], 0)
	return string(magic[:count]) == "GGUF"
}

// Later reports whether a name is that of a file of a set after the first.
func Later(name string) bool {
	parts := setName.FindStringSubmatch(filepath.Base(name))
	return len(parts) > 0 && parts[2] != "00001"
}
