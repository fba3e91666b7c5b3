package serving

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// TestEncoders: the buffers of encoders of images are those that llama.cpp computes, byte for byte,
// with flash attention and without (fixtures/oracle/mmproj.py).
func TestEncoders(t *testing.T) {
	packed, err := os.ReadFile("../../fixtures/oracle/mmproj.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	exact, families := 0, map[string]bool{}
	for decoder := json.NewDecoder(lines); decoder.More(); {
		var row struct {
			Family, Header string
			Size, Bytes    int64
			On             int64 `json:"flash_on"`
			Off            int64 `json:"flash_off"`
		}
		if err := decoder.Decode(&row); err != nil {
			t.Fatal(err)
		}
		tower, err := newTower(headed(t, row.Header, row.Size), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, flash := range []bool{true, false} {
			want := row.Off - row.Bytes
			if flash {
				want = row.On - row.Bytes
			}
			tower.flash = flash
			if got, judged := tower.compute(32); got != want || !judged {
				t.Errorf("%s, flash attention %v: %d bytes, llama.cpp has %d (%+d)", row.Family, flash, got, want, got-want)
			} else {
				exact++
				families[row.Family] = true
			}
		}
	}
	t.Logf("%d buffers of %d projectors are exact", exact, len(families))
	if exact < 64 || len(families) < 8 {
		t.Error("too few")
	}
}

// headed is a file with a header of the oracle and no weights.
func headed(t *testing.T, header string, size int64) *gguf.File {
	t.Helper()
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(header)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mmproj.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Read(path, func(path string) (*os.File, int64, error) {
		file, err := os.Open(path)
		return file, size, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return file
}
