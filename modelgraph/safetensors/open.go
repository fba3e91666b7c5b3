package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// OpenBeneath opens the regular file name, slash-separated, of the folder dir for reading. The file
// may be a symbolic link, or lie behind one. The link must end inside dir, or inside the blobs
// folder of the download cache that dir is part of. The cache is the nearest folder, up to three
// levels above dir, that has a "blobs" folder of its own:
//
//	Hugging Face  models--ORG--NAME/snapshots/REV/FILE -> ../../blobs/SHA
//	ModelScope    keeps plain files in models/ORG/NAME; the link "Qwen2.5" ->
//	              "Qwen2___5" next to them is followed as part of dir
//
// dir itself is the caller's choice, and may be reached through any link. Hard links are read like
// any file.
//
// A name that could leave dir, a link that does, and anything but a regular file give a
// [*refusedError]. A missing file gives an error that [fs.ErrNotExist] matches.
func OpenBeneath(dir, name string) (*os.File, fs.FileInfo, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	defer f.close()
	return f.open(name)
}

// folder is a directory whose files are opened by the rule of OpenBeneath.
type folder struct {
	dir   string // as the caller wrote it
	home  place
	blobs *place // nil outside a download cache
}

// place is a directory with its absolute path without links. Opening files through the os.Root is
// safe even if a link is replaced after its path was checked.
type place struct {
	path string
	root *os.Root
}

func openPlace(path string) (place, error) {
	root, err := os.OpenRoot(path)
	return place{path, root}, err
}

func openFolder(dir string) (*folder, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = followed(path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder: %w", err)
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() { // a FIFO would wait for its other end
		return nil, &refusedError{dir, kindOf(info.Mode()) + ": want a folder"}
	}
	f := &folder{dir: dir}
	if f.home, err = openPlace(path); err != nil {
		return nil, fmt.Errorf("opening folder: %w", err)
	}
	if path := findBlobs(path); path != "" {
		blobs, err := openPlace(path)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("opening cache of %s: %w", printable(dir), err)
		}
		f.blobs = &blobs
	}
	return f, nil
}

// followed returns the path to which links lead. Its error for a cycle has the system's words.
func followed(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil && strings.Contains(err.Error(), "EvalSymlinks") {
		err = errors.New("too many levels of symbolic links")
	}
	return target, err
}

func (dir *folder) close() {
	dir.home.root.Close() //nolint:errcheck // opened for reading
	if dir.blobs != nil {
		dir.blobs.root.Close() //nolint:errcheck // likewise
	}
}

// findBlobs looks for the blobs folder of the cache that dir is part of. A component of a diffusers
// snapshot is three levels below.
func findBlobs(dir string) string {
	for range 3 {
		dir = filepath.Dir(dir)
		path := filepath.Join(dir, "blobs")
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			return path
		}
	}
	return ""
}

func (dir *folder) open(name string) (*os.File, fs.FileInfo, error) {
	if fault := nameFault(name); fault != "" {
		return nil, nil, &refusedError{name, fault}
	}
	target, err := followed(filepath.Join(dir.home.path, filepath.FromSlash(name)))
	if err != nil {
		return nil, nil, dir.wrap(name, err)
	}
	in, rel := dir.locate(target)
	if in == nil {
		return nil, nil, &refusedError{name, fmt.Sprintf("link to %s, outside %s and outside any download cache it is part of", quote(target), quote(dir.dir))}
	}
	// Opening a device can act on it, so the check comes first. It is repeated on the open file.
	info, err := in.root.Stat(rel)
	if err != nil {
		return nil, nil, dir.wrap(name, err)
	}
	if err := regular(info, name); err != nil {
		return nil, nil, err
	}
	file, err := in.root.OpenFile(rel, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, dir.wrap(name, err)
	}
	info, err = statRegular(file, name)
	if err != nil {
		file.Close() //nolint:errcheck // the first error counts
		return nil, nil, err
	}
	return file, info, nil
}

// locate returns the place that contains target, a path without links.
func (dir *folder) locate(target string) (*place, string) {
	for _, p := range []*place{&dir.home, dir.blobs} {
		if p == nil {
			continue
		}
		if rel, err := filepath.Rel(p.path, target); err == nil && filepath.IsLocal(rel) {
			return p, rel
		}
	}
	return nil, ""
}

// wrap names the file as the caller does, not by the path that it resolves to.
func (dir *folder) wrap(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: opening in %s: %w", printable(name), printable(dir.dir), err)
}
