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

// TestDirect: a read comes from the disk if the page cache lacks a part of it, wherever it begins;
// else it does not.
func TestDirect(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCheckpoint(t, folder, bigConfig, modelgraph.F32)
	graph := readGraph(t, folder)
	source, _ := fixtures.Must(Checkpoint(graph))(t).(*stored)
	name := "model.embed_tokens.weight"
	want := fixtures.Must(streamed(source, name, modelgraph.F32))(t)
	ranges := fixtures.Must(source.Ranges(name, modelgraph.F32))(t)
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
	evict(t, filepath.Join(folder, "model.safetensors"))
	if all, _ := source.files[0].cached(0, source.files[0].was.size); all {
		t.Skip("the page cache keeps the file")
	}
	read(size)
	read(2 * size) // a direct read leaves nothing in the cache
	handle := source.files[0].handle
	if err := unix.Fadvise(int(handle.Fd()), 0, 0, unix.FADV_RANDOM); err != nil { // no read ahead
		t.Fatal(err)
	}
	fixtures.Must(handle.ReadAt(make([]byte, 1), source.slices[name][0].begin+at))(t)
	read(3 * size) // the cache has the first page alone
	if err := source.Close(); err != nil {
		t.Error(err)
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
