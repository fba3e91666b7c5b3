package out

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// Write runs write on stdout, or writes a file atomically. It waits for the reader of a FIFO until
// the command is interrupted. That uses the root's context, as plan's own also ends with
// --time-limit.
func Write(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	begin()
	if path == "" {
		return write(cmd.OutOrStdout())
	}
	whole := write
	write = func(to io.Writer) error {
		file := &tracked{to: to}
		err := whole(file)
		if err != nil && file.err == nil {
			return &contentError{err}
		}
		return err
	}
	target, err := followLinks(path)
	switch info, missing := os.Stat(target); {
	case err != nil:
	case missing == nil && !info.Mode().IsRegular():
		_, err = Interruptible(cmd.Root().Context(), toWrite, path, func() (struct{}, error) { return struct{}{}, writeTo(target, write) })
	default:
		err = writeFile(target, forced(cmd), write)
	}
	if content := (*contentError)(nil); errors.As(err, &content) {
		return content.err
	}
	if errors.Is(err, fs.ErrExist) {
		return exists(path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, withoutName(err))
	}
	return nil
}

// contentError is an error of the content, not of the file.
type contentError struct{ err error }

func (err *contentError) Error() string { return err.err.Error() }
func (err *contentError) Unwrap() error { return err.err }

// tracked keeps a writer's first error.
type tracked struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (file *tracked) Write(text []byte) (int, error) {
	count, err := file.to.Write(text)
	if file.err == nil {
		file.err = err
	}
	return count, err
}

// outcome says which came first: the result is being written, or the process ends without one.
var outcome atomic.Int32

const (
	writing = 1 + iota
	leaving
)

// begin claims that the result is written. If the process is about to end, it does not return.
func begin() {
	if !outcome.CompareAndSwap(0, writing) && outcome.Load() == leaving {
		select {}
	}
}

// Leave reports whether the process may end without a result: none is being written, and from now
// on none will be.
func Leave() bool { return outcome.CompareAndSwap(0, leaving) }

// toWrite is the time to write the best answer to a waiting reader after an interrupt.
const toWrite = time.Second

// Interruptible runs a function that may wait for another process, such as the other end of a FIFO.
// It waits until the command is interrupted, and longer after that. The blocked system call then
// ends with the process.
func Interruptible[T any](ctx context.Context, longer time.Duration, path string, wait func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := wait()
		done <- answer{v, err}
	}()
	select {
	case found := <-done:
		return found.value, found.err
	case <-ctx.Done():
	}
	select {
	case found := <-done:
		return found.value, found.err
	case <-time.After(longer):
		var none T
		return none, fmt.Errorf("%q: interrupted while waiting for its other end", path)
	}
}

// followLinks returns the file that a path names, which may not exist. Through a link, it is the
// link's target. A pipe has no own name, so its path is kept.
func followLinks(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return path, nil
	}
	const most = 40 // the limit of Linux
	for range most {
		to, err := os.Readlink(path)
		if err != nil { // not a link, or missing
			return path, nil //nolint:nilerr // writing reports the error
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", errors.New("too many links")
}

// writeFile makes a file whole. Without force, it leaves a file that is not of the same kind.
func writeFile(path string, force bool, write func(io.Writer) error) (err error) {
	mode := fs.FileMode(0o666) // less the umask
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	temp := filepath.Join(filepath.Dir(path), ".devmap-"+rand.Text())
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()    //nolint:errcheck // the first error counts
			os.Remove(temp) //nolint:errcheck // likewise
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if !force && protected(path, temp) {
		return fs.ErrExist
	}
	return os.Rename(temp, path)
}

// writeTo writes to a pipe or a device such as /dev/null: replacing it would destroy it.
func writeTo(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// withoutName removes the file name from the error of a file operation: users do not know the
// temporary name.
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
