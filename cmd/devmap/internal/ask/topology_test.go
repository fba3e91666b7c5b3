package ask

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestReadTopology: a topology is a small file.
func TestReadTopology(t *testing.T) {
	base := func(string) costmodel.Device { return costmodel.Device{} }
	path := filepath.Join(t.TempDir(), "topology.json")
	for text, want := range map[string]string{
		`{"format_version": "devmap.topology/v1", "devices": [{"name": "new", "capacity_bytes": 500}]}`: "",
		string(bytes.Repeat([]byte(" "), 16<<20+1)):                                                     path + ": larger than the 16 MiB that a topology may have",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readTopology(path, base)
		if want == "" && (err != nil || len(got.Devices) != 1) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%.80q: %v, %v", text, got, err)
		}
	}
	if _, err := readTopology(path+"x", base); err == nil {
		t.Error("a missing file is read")
	}
}
