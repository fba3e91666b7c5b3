//go:build unix

package safetensors

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// None of these may block or be read.
func TestOpenBeneathSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Skip(err)
	}
	link(t, "fifo", filepath.Join(dir, "link"))
	wantRefused(t, dir, "fifo", "a FIFO: want a regular file")
	wantRefused(t, dir, "link", "a FIFO: want a regular file")
	wantRefused(t, "/dev", "null", "a device: want a regular file")
	var refused *refusedError
	for _, path := range []string{fifo, os.DevNull} {
		if _, err := ReadFile(path); !errors.As(err, &refused) {
			t.Errorf("ReadFile of %s gives %v", path, err)
		}
	}
	t.Chdir(dir) // a socket's path must be short
	if l, err := net.Listen("unix", "socket"); err == nil {
		defer l.Close()
		wantRefused(t, ".", "socket", "a socket: want a regular file")
	}
	write(t, "model.safetensors", file("{}", 0))
	if _, err := readFolder("."); err != nil {
		t.Errorf("a folder with a FIFO that nothing names: %v", err)
	}
	if err := os.Remove("model.safetensors"); err != nil {
		t.Fatal(err)
	}
	write(t, "model.safetensors.index.json", `{"weight_map":{"a":"fifo"}}`)
	if _, err := readFolder("."); !errors.As(err, &refused) {
		t.Errorf("an index that names a FIFO gives %v", err)
	}
}
