package weights

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// stored reads values from files by pread: a mapping of a file that shrinks would end the process.
type stored struct {
	files []*openFile
	// slices has the slices of every name, in order.
	slices      map[string][]slice
	raw, values []byte // one chunk
	disk        disk
}

// slice is bytes [begin, end) of a file.
type slice struct {
	tensor     string // as the file spells it
	file       *openFile
	dtype      modelgraph.DType
	begin, end int64
}

// openFile is a file with its identity when it was opened.
type openFile struct {
	path    string
	folder  string
	name    string // in the folder
	handle  *os.File
	direct  *os.File // bypasses the page cache; nil: it cannot, or Ranges was not called
	disk    *disk    // counts direct reads; nil: Ranges was not called
	was     identity
	tensors map[string]*safetensors.Tensor
}

// ChangedError is a file that changed while it was read: the values may be of two versions of it.
type ChangedError struct {
	File, Was, Is string
}

// Error implements error.
func (err *ChangedError) Error() string {
	return fmt.Sprintf("%s: changed while it was read: it was %s, and is %s", err.File, err.Was, err.Is)
}

// open opens a file of a folder by the rule of [safetensors.OpenBeneath] and
// reads its header.
func open(folder, name string) (*openFile, error) {
	handle, info, err := safetensors.OpenBeneath(folder, name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, filepath.FromSlash(name))
	file := &openFile{path: path, folder: folder, name: name, handle: handle, was: identify(info)}
	tensors, err := safetensors.ReadTensors(handle, info.Size(), path)
	if err != nil {
		return nil, errors.Join(err, handle.Close())
	}
	file.tensors = make(map[string]*safetensors.Tensor, len(tensors))
	for i := range tensors {
		file.tensors[tensors[i].Name] = &tensors[i]
	}
	return file, nil
}

// forget drops the headers, once everything was checked against them.
func (source *stored) forget() {
	for _, file := range source.files {
		file.tensors = nil
	}
}

// changed returns an error if the open file has changed.
func (file *openFile) changed() error {
	info, err := file.handle.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", file.path, err)
	}
	if is := identify(info); is != file.was {
		return &ChangedError{file.path, file.was.String(), is.String()}
	}
	return nil
}

// replaced returns an error if another file has the name now.
func (file *openFile) replaced() error {
	handle, info, err := safetensors.OpenBeneath(file.folder, file.name)
	if err != nil {
		return &ChangedError{file.path, file.was.String(), "gone (" + err.Error() + ")"}
	}
	defer handle.Close() //nolint:errcheck // opened for reading
	if is := identify(info); is != file.was {
		return &ChangedError{file.path, file.was.String(), is.String()}
	}
	return nil
}

// Close implements Source.
func (source *stored) Close() error {
	var errs []error
	for _, file := range source.files {
		err := file.changed()
		if err == nil {
			err = file.replaced()
		}
		if file.direct != nil {
			err = errors.Join(err, file.direct.Close())
		}
		errs = append(errs, err, file.handle.Close())
	}
	source.files, source.raw, source.values = nil, nil, nil
	return errors.Join(errs...)
}

// Stream implements Source.
func (source *stored) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func([]byte) error) error {
	slices, known := source.slices[name]
	if err := asked(name, known, dtype); err != nil {
		return err
	}
	for i := range slices {
		if err := source.stream(ctx, &slices[i], dtype, emit); err != nil {
			return err
		}
	}
	return nil
}

// stream emits a slice, a chunk at a time.
func (source *stored) stream(ctx context.Context, from *slice, dtype modelgraph.DType, emit func([]byte) error) error {
	step := chunk * from.dtype.Bits() / 8
	for at := from.begin; at < from.end; at += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := min(step, from.end-at)
		if int64(cap(source.raw)) < size {
			source.raw = make([]byte, size)
		}
		raw := source.raw[:size]
		if err := from.read(raw, at); err != nil {
			return err
		}
		if dtype != from.dtype {
			source.values = convert(source.values[:0], raw, from.dtype, dtype)
			raw = source.values
		}
		if err := emit(raw); err != nil {
			return err
		}
	}
	return from.file.changed()
}

// read fills raw from the file at an offset.
func (from *slice) read(raw []byte, at int64) error {
	count, err := from.file.readAt(raw, at)
	if count == len(raw) {
		return nil
	}
	if changed := from.file.changed(); changed != nil {
		return changed
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: tensor %q: %d of %d bytes at %d: %w", from.file.path, from.tensor, count, len(raw), at, err)
}
