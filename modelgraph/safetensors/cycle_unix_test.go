//go:build unix

package safetensors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCycle: a cycle of links is reported in the system's words, not in Go's.
func TestCycle(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink("config.json", filepath.Join(folder, "config.json")); err != nil {
		t.Fatal(err)
	}
	_, _, err := OpenBeneath(folder, "config.json")
	if err == nil || !strings.Contains(err.Error(), "too many levels of symbolic links") || strings.Contains(err.Error(), "EvalSymlinks") {
		t.Error(err)
	}
}
