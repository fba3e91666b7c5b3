package weights

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestRanges: whatever pieces ranges are read in, by however many, the bytes are
// those of the stream: random ones, stored ones, and those that are converted.
func TestRanges(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCheckpoint(t, folder, bigConfig, modelgraph.F32)
	graph := readGraph(t, folder)
	files := fixtures.Must(Checkpoint(graph))(t)
	name := "model.embed_tokens.weight"
	for from, source := range map[string]Source{"files": files, "drawn": Random(graph, 5)} {
		for _, dtype := range []modelgraph.DType{modelgraph.F32, modelgraph.BF16} {
			ranged, is := source.(Ranged)
			if !is {
				t.Fatalf("%T", source)
			}
			ranges := fixtures.Must(ranged.Ranges(name, dtype))(t)
			want := fixtures.Must(streamed(source, name, dtype))(t)
			width := dtype.Bits() / 8
			for i := range ranges {
				one := &ranges[i]
				got := make([]byte, one.Bytes)
				var readers sync.WaitGroup
				for at := int64(0); at < one.Bytes; {
					begin, size := at, min(one.Bytes-at, width*(1+rand.Int64N(one.Step)))
					readers.Go(func() {
						if err := one.Read(got[begin:begin+size], begin); err != nil {
							t.Error(err)
						}
					})
					at += size
				}
				readers.Wait()
				if int64(len(want)) < one.Bytes || !bytes.Equal(got, want[:one.Bytes]) {
					t.Errorf("%s as %v: range %d has other bytes", from, dtype, i)
				}
				want = want[min(one.Bytes, int64(len(want))):]
			}
			if len(want) > 0 {
				t.Errorf("%s as %v: %d bytes are in no range", from, dtype, len(want))
			}
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDiskTime: the time of direct reads begins with the earliest, whichever ends first.
func TestDiskTime(t *testing.T) {
	t.Parallel()
	source, now := &stored{}, time.Now()
	source.disk.read(1, now)
	source.disk.read(2, now.Add(-time.Hour))
	if total, seconds := source.Disk(); total != 3 || seconds < time.Hour.Seconds() {
		t.Errorf("%d bytes in %v s", total, seconds)
	}
}

// TestRangesThatCannotBe: unknown names and types are refused,
// and a file that became shorter is named, with its tensor.
func TestRangesThatCannotBe(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeCheckpoint(t, folder, bigConfig, modelgraph.BF16)
	graph := readGraph(t, folder)
	source := fixtures.Must(Checkpoint(graph))(t)
	for _, each := range []Source{source, Random(graph, 1)} {
		ranged, is := each.(Ranged)
		if !is {
			t.Fatalf("%T", each)
		}
		if _, err := ranged.Ranges("lm_hat.weight", modelgraph.BF16); fmt.Sprint(err) != `"lm_hat.weight": there is no such parameter` {
			t.Error(err)
		}
		if _, err := ranged.Ranges("model.norm.weight", modelgraph.F16); err == nil || !strings.Contains(err.Error(), "asked for as F16") {
			t.Error(err)
		}
	}
	ranged, _ := source.(Ranged)
	for _, dtype := range []modelgraph.DType{modelgraph.BF16, modelgraph.F32} {
		ranges := fixtures.Must(ranged.Ranges("model.embed_tokens.weight", dtype))(t)
		path := filepath.Join(folder, "model.safetensors")
		if !strings.Contains(ranges[0].Place, path+`: tensor "model.embed_tokens.weight"`) {
			t.Error(ranges[0].Place)
		}
		if err := os.Truncate(path, 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := ranges[0].Read(make([]byte, 4<<20), 1<<20); err == nil || !strings.Contains(err.Error(), path+": changed while it was read") {
			t.Error(err)
		}
	}
	if err := source.Close(); err == nil {
		t.Error("the file is not what it was, and Close says nothing")
	}
}
