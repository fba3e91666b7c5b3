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

// TestDirect: of a file that the page cache has nothing of, every read comes from the disk, wherever it
// begins. Of a file that it has a part of, a read does whose last page it lacks.
func TestDirect(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCheckpoint(t, folder, bigConfig, modelgraph.F32)
	path := filepath.Join(folder, "model.safetensors")
	graph := readGraph(t, folder)
	name := "model.embed_tokens.weight"
	reopened := func() (*stored, *openFile, Range) {
		source, _ := fixtures.Must(Checkpoint(graph))(t).(*stored)
		return source, source.files[0], fixtures.Must(source.Ranges(name, modelgraph.F32))(t)[0]
	}
	source, file, values := reopened()
	want := fixtures.Must(streamed(source, name, modelgraph.F32))(t)
	const at, size = 4 * 1001, 4 * 3003
	read := func(wanted int64) {
		t.Helper()
		got := make([]byte, size)
		if err := values.Read(got, at); err != nil || !bytes.Equal(got, want[at:at+size]) {
			t.Errorf("other bytes, %v", err)
		}
		if total, seconds := source.Disk(); total != wanted || seconds < 0 || seconds == 0 && wanted > 0 {
			t.Errorf("%d bytes from the disk in %v s, want %d", total, seconds, wanted)
		}
	}
	if file.direct != nil {
		t.Error("a file in the page cache is read past it")
	}
	read(0)
	finish := func() {
		t.Helper()
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
	finish()
	evict(t, path)
	source, file, values = reopened()
	defer finish()
	if file.direct == nil {
		t.Skip("the file system has no direct reads, or the page cache keeps the file")
	}
	evict(t, path) // what was read with the header
	read(size)
	read(2 * size) // a direct read leaves nothing in the cache
	handle := fixtures.Must(os.Open(path))(t)
	defer handle.Close()                                                           //nolint:errcheck // opened for reading
	if err := unix.Fadvise(int(handle.Fd()), 0, 0, unix.FADV_RANDOM); err != nil { // no read ahead
		t.Fatal(err)
	}
	begin := source.slices[name][0].begin + at
	fixtures.Must(handle.ReadAt(make([]byte, 1), begin))(t)
	file.cold = false // as if one of its samples were cached
	read(3 * size)    // the cache has the first page alone
	fixtures.Must(handle.ReadAt(make([]byte, size), begin))(t)
	read(3 * size)
	file.cold = true
	read(4 * size)
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
