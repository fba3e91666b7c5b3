package weights

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestDirect: what the page cache has not comes from the disk, whatever place it begins at; what it
// has does not.
func TestDirect(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCheckpoint(t, folder, bigConfig, modelgraph.F32)
	graph := readGraph(t, folder)
	files, err := Checkpoint(graph)
	if err != nil {
		t.Fatal(err)
	}
	source, _ := files.(*stored)
	name := "model.embed_tokens.weight"
	want, err := streamed(source, name, modelgraph.F32)
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := source.Ranges(name, modelgraph.F32)
	if err != nil {
		t.Fatal(err)
	}
	if source.files[0].direct == nil {
		t.Skip("the file system has no direct reads, or the kernel does not say what the page cache has")
	}
	const at, size = 4 * 1001, 4 * 3003
	read := func(wanted int64) {
		t.Helper()
		got := make([]byte, size)
		if err := ranges[0].Read(got, at); err != nil || !bytes.Equal(got, want[at:at+size]) {
			t.Errorf("other bytes, %v", err)
		}
		if total, seconds := source.Disk(); total != wanted || seconds < 0 || seconds == 0 && wanted > 0 {
			t.Errorf("%d bytes from the disk in %v s, want %d", total, seconds, wanted)
		}
	}
	read(0)
	paths, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		evict(t, path)
	}
	if all, _ := source.files[0].cached(0, source.files[0].was.size); all {
		t.Skip("the page cache keeps the file")
	}
	read(size)
	read(2 * size) // a direct read leaves nothing in the cache
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}

// evict has the page cache drop a file.
func evict(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // opened for reading
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}
