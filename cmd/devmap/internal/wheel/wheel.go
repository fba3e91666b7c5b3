// Package wheel writes Python wheels: a Python package, the Go program inside it, and pip's
// metadata. The format is PyPA's "Binary distribution format"
// (packaging.python.org/specifications/binary-distribution-format), written without Python. The
// same input gives the same bytes: files are ordered and have one time.
package wheel

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Wheel is the content of one wheel.
type Wheel struct {
	Name string // of the package's folder and command
	// Distribution is pip's name: another project owns devmap on PyPI.
	Distribution string
	Version      string // in the form of [Version]
	Summary      string
	Binary       string   // the program's file
	Tags         []string // of platforms, in the form of [Platforms]
	// Sources is the folder that contains the package's folder Name. Every .py file and py.typed in
	// there are included.
	Sources fs.FS
	Readme  []byte // Markdown
	License []byte // Apache-2.0
	Time    time.Time
}

// Write writes the wheel's file to a folder and returns its path.
func (wheel *Wheel) Write(folder string) (string, error) {
	entries, err := wheel.entries()
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, wheel.File())
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	err = archive(file, entries, wheel.Time)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", name, err)
	}
	return name, nil
}

// File returns the name of the wheel's file: for any Python 3, without Python's C interface.
func (wheel *Wheel) File() string {
	return fmt.Sprintf("%s-py3-none-%s.whl", wheel.stem(), strings.Join(wheel.Tags, "."))
}

// stem returns the start of the names of the wheel's file and of its metadata folder. The format
// replaces hyphens in the distribution's name by underscores there.
func (wheel *Wheel) stem() string {
	return strings.ReplaceAll(wheel.Distribution, "-", "_") + "-" + wheel.Version
}

// entry is a file of the wheel.
type entry struct {
	name    string
	program bool
	data    []byte
}

// entries returns all files in order: the package, then pip's metadata, and the record last, as the
// format recommends.
func (wheel *Wheel) entries() ([]entry, error) {
	all, err := wheel.sources()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(wheel.Binary)
	if err != nil {
		return nil, err
	}
	name := wheel.Name
	if slices.ContainsFunc(wheel.Tags, func(tag string) bool { return strings.HasPrefix(tag, "win") }) {
		name += ".exe"
	}
	all = append(all, entry{name: path.Join(wheel.Name, "_bin", name), program: true, data: program})
	slices.SortFunc(all, func(first, second entry) int { return strings.Compare(first.name, second.name) })
	info := wheel.stem() + ".dist-info/"
	all = append(all,
		entry{name: info + "METADATA", data: wheel.metadata()},
		entry{name: info + "WHEEL", data: wheel.tags()},
		entry{name: info + "entry_points.txt", data: fmt.Appendf(nil, "[console_scripts]\n%s = %s.__main__:main\n", wheel.Name, wheel.Name)},
		entry{name: info + "licenses/LICENSE", data: wheel.License},
	)
	return append(all, record(info+"RECORD", all)), nil
}

// sources returns the package's own files.
func (wheel *Wheel) sources() (all []entry, err error) {
	err = fs.WalkDir(wheel.Sources, wheel.Name, func(name string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() || path.Ext(name) != ".py" && path.Base(name) != "py.typed" {
			return err
		}
		data, err := fs.ReadFile(wheel.Sources, name)
		all = append(all, entry{name: name, data: data})
		return err
	})
	if err == nil && !slices.ContainsFunc(all, func(one entry) bool { return one.name == wheel.Name+"/__init__.py" }) {
		err = fmt.Errorf("%s/__init__.py: %w", wheel.Name, os.ErrNotExist)
	}
	return all, err
}

// metadata returns the package's description (Core metadata specifications, 2.4).
func (wheel *Wheel) metadata() []byte {
	var text strings.Builder
	line := func(name, value string) { fmt.Fprintf(&text, "%s: %s\n", name, value) }
	line("Metadata-Version", "2.4")
	line("Name", wheel.Distribution)
	line("Version", wheel.Version)
	line("Summary", wheel.Summary)
	line("License-Expression", "Apache-2.0")
	line("License-File", "LICENSE")
	line("Requires-Python", ">=3.9")
	for _, name := range []string{"Intended Audience :: Science/Research", "Programming Language :: Go", "Programming Language :: Python :: 3", "Topic :: Scientific/Engineering :: Artificial Intelligence", "Typing :: Typed"} {
		line("Classifier", name)
	}
	line("Description-Content-Type", "text/markdown; charset=UTF-8")
	text.WriteString("\n")
	text.Write(wheel.Readme)
	return []byte(text.String())
}

// tags lists the Pythons and platforms of the wheel, one per line.
func (wheel *Wheel) tags() []byte {
	text := []byte("Wheel-Version: 1.0\nGenerator: devmap\nRoot-Is-Purelib: false\n")
	for _, tag := range wheel.Tags {
		text = fmt.Appendf(text, "Tag: py3-none-%s\n", tag)
	}
	return text
}
