//go:build unix

package safetensors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkCycle: the error of links in a cycle has the system's words, not Go's.
func TestLinkCycle(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink("config.json", filepath.Join(folder, "config.json")); err != nil {
		t.Fatal(err)
	}
	_, _, err := OpenBeneath(folder, "config.json")
	if err == nil || !strings.Contains(err.Error(), "too many levels of symbolic links") || strings.Contains(err.Error(), "EvalSymlinks") {
		t.Error(err)
	}
}
