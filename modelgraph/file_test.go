package modelgraph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSmall(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadSmall(path, "a map", 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	for _, c := range []struct {
		path string
		most int64
		want string
	}{{path, 4, "larger than the 0 MiB that a map may have"}, {dir, 9, "a directory, not a map"}, {os.DevNull, 9, "a device, not a map"}} {
		if _, err := ReadSmall(c.path, "a map", c.most); err == nil || err.Error() != c.path+": "+c.want {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

// TestReadSmallTooLarge: a file that is larger than it may be is not read: the
// first bytes of this one would take all memory.
func TestReadSmallTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err)
	}
	if _, err := ReadSmall(path, "a plan", 1<<39); err == nil || !strings.Contains(err.Error(), "larger than the 524288 MiB that a plan may have") {
		t.Errorf("%v", err)
	}
}
