package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// writeOut runs write on stdout, or on a file that appears whole or not at
// all.
func writeOut(stdout io.Writer, path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return write(stdout)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays, and what it names is replaced
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeTo(path, write)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".devmap-*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()           //nolint:errcheck // the first error counts
			os.Remove(f.Name()) //nolint:errcheck // likewise
			err = fmt.Errorf("writing %q: %w", path, err)
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	const readable = 0o644
	if err := f.Chmod(readable); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeTo writes to what is no regular file (a pipe, /dev/null): replacing it
// would destroy it.
func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	return errors.Join(write(f), f.Close())
}
