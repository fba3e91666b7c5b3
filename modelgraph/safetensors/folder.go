package safetensors

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// A Checkpoint is the tensors of a folder. It is not modified after it is read.
type Checkpoint struct {
	Dir      string
	Files    []string // shards that are read, relative to Dir with slashes, by name
	Tensors  []Tensor // by File, then in the order of the file
	Warnings []string // what was ignored or is not as declared, one line each
}

// ReadFolder reads the headers of the checkpoint in dir. It reads the shards that
// model.safetensors.index.json names, else model.safetensors, else the diffusers files, else the
// only index or the only file. A folder with several files and no index is refused.
//
// The index decides which tensors there are. A tensor that is in a shard and not in the index is
// left out with a warning. A tensor that is in the index and not in its shard is an error, as is a
// name in two shards. All errors are reported, in the order of the files, up to a limit.
//
// Files are opened by the rule of [OpenBeneath]. Errors name the folder.
func ReadFolder(dir string) (*Checkpoint, error) {
	checkpoint, err := readFolder(dir)
	var refused *refusedError
	if err == nil || errors.As(err, &refused) && refused.File == dir {
		return checkpoint, err
	}
	return nil, fmt.Errorf("%s: %w", dir, err)
}

func readFolder(dir string) (*Checkpoint, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.close()
	names, err := f.list()
	if err != nil {
		return nil, err
	}
	start, err := choose(dir, names)
	if err != nil {
		return nil, err
	}
	idx := &index{files: []string{start}}
	if isIndex(start) {
		if idx, err = f.readIndex(start); err != nil {
			return nil, err
		}
	}
	idx.sortFiles()
	headers, err := f.readShards(idx)
	if err != nil {
		return nil, err
	}
	checkpoint := &Checkpoint{Dir: dir, Files: idx.files}
	if err := checkpoint.merge(idx, headers); err != nil {
		return nil, err
	}
	checkpoint.warnUnread(start, names)
	return checkpoint, nil
}

// list returns the names in the folder, sorted.
func (dir *folder) list() ([]string, error) {
	entries, err := os.ReadDir(dir.home.path)
	if err != nil {
		return nil, fmt.Errorf("listing folder: %w", err)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

func (dir *folder) readIndex(name string) (*index, error) {
	file, info, err := dir.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > maxIndexSize {
		return nil, &syntaxError{File: name, Msg: fmt.Sprintf("index of %d bytes: at most %d are read", info.Size(), maxIndexSize)}
	}
	return readIndex(io.NewSectionReader(file, 0, info.Size()), name)
}

// readShards reads the headers of all files, several at once.
func (dir *folder) readShards(idx *index) ([]*fileHeader, error) {
	count := len(idx.files)
	headers, errs := make([]*fileHeader, count), make([]error, count)
	var next, tensors atomic.Int64
	var wg sync.WaitGroup
	for range min(maxReaders, count) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				// A million links to one large file would pass every
				// other limit, so that the sum is bounded too.
				if i >= count || tensors.Load() > maxTensors {
					return
				}
				headers[i], errs[i] = dir.readShard(idx.files[i], idx.name)
				if errs[i] == nil {
					tensors.Add(int64(len(headers[i].Tensors)))
				}
			}
		})
	}
	wg.Wait()
	if tensors.Load() > maxTensors {
		return nil, &refusedError{dir.dir, fmt.Sprintf("more than %d tensors in all files", maxTensors)}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	return headers, joinErrors(errs)
}

// readShard reads one header; index is the file that names it, if one does.
func (dir *folder) readShard(name, index string) (*fileHeader, error) {
	file, info, err := dir.open(name)
	if err != nil {
		if index != "" {
			err = fmt.Errorf("%w (named by %s)", err, printable(index))
		}
		return nil, err
	}
	defer file.Close()
	return readHeader(file, info.Size(), name)
}
