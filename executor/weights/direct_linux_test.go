package weights

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestDirect: a file comes from the disk if the page cache has nothing of it, wherever a read begins.
// Else no read does.
func TestDirect(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCheckpoint(t, folder, bigConfig, modelgraph.F32)
	path, name := filepath.Join(folder, "model.safetensors"), "model.embed_tokens.weight"
	graph := readGraph(t, folder)
	const at, size = 4 * 1001, 4 * 3003
	var want []byte
	for _, cold := range []bool{false, true} {
		if cold {
			evict(t, path)
		}
		source, _ := fixtures.Must(Checkpoint(graph))(t).(*stored)
		values := fixtures.Must(source.Ranges(name, modelgraph.F32))(t)[0]
		if direct := source.files[0].direct != nil; direct && !cold {
			t.Error("a file in the page cache is read past it")
		} else if cold && !direct {
			t.Skip("the file system has no direct reads, or the page cache keeps the file")
		}
		if !cold {
			want = fixtures.Must(streamed(source, name, modelgraph.F32))(t)
		}
		for times := range int64(3) { // a direct read leaves nothing in the cache
			got, wanted := make([]byte, size), int64(0)
			if cold {
				wanted = (times + 1) * size
			}
			if err := values.Read(got, at); err != nil || !bytes.Equal(got, want[at:at+size]) {
				t.Errorf("other bytes, %v", err)
			}
			if total, seconds := source.Disk(); total != wanted || seconds < 0 || seconds == 0 && wanted > 0 {
				t.Errorf("%d bytes from the disk in %v s, want %d", total, seconds, wanted)
			}
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

// evict has the page cache drop a file.
func evict(t *testing.T, path string) {
	t.Helper()
	file := fixtures.Must(os.Open(path))(t)
	defer file.Close() //nolint:errcheck // opened for reading
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}
