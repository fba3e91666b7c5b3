//go:build unix

package safetensors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCircle: a circle of links is told in the system's words, not in Go's.
func TestCircle(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink("config.json", filepath.Join(folder, "config.json")); err != nil {
		t.Fatal(err)
	}
	_, _, err := OpenBeneath(folder, "config.json")
	if err == nil || !strings.Contains(err.Error(), "too many levels of symbolic links") || strings.Contains(err.Error(), "EvalSymlinks") {
		t.Error(err)
	}
}
