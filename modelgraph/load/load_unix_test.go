//go:build unix

package load

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFIFO: nothing waits for a writer.
func TestFIFO(t *testing.T) {
	for _, name := range []string{"a.json", "a.safetensors", "config", "d/config.json", "d/model.safetensors"} {
		path := filepath.Join(t.TempDir(), name)
		arg := path
		if dir := filepath.Dir(path); filepath.Base(dir) == "d" {
			arg = dir
			write(t, filepath.Join(dir, "x"), "")
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Model(arg, Options{}); err == nil || !strings.Contains(err.Error(), "FIFO") {
			t.Errorf("%s: %v, want a refusal of the FIFO", name, err)
		}
	}
}
