package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenNames: the error of opening a folder or a device has the whole path.
func TestOpenNames(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "config.json")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, os.DevNull} {
		_, _, err := openRegular(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+": a d") || !strings.HasSuffix(err.Error(), ": want a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
