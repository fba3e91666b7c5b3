//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

var (
	loadFolder = flag.String("load-folder", "", "of the model that TestGPULoad loads")
	loadReads  = flag.String("load-reads", "", "a file for its times")
)

// timed is a load or a read: nanoseconds of its begin and end, and how many bytes it had.
type timed struct{ begin, end, bytes int64 }

// TestGPULoad loads the weights of a model some times, and writes when loads and their reads began and
// ended. With copies as CUPTI reports them (cmd/devmap/internal/gpu/trace.c), timeline.py says where
// the time went.
func TestGPULoad(t *testing.T) {
	onGPU(t)
	if *loadFolder == "" {
		t.Skip("no -load-folder")
	}
	const runs, least = 5, 32 << 10 // bytes of a read, except a tensor's last
	uploads, bytes := uploadsOf(t, *loadFolder)
	var count atomic.Int64
	reads := make([]timed, bytes/least+int64(2*len(uploads)))
	for i := range uploads {
		read := uploads[i].Values.Read
		uploads[i].Values.Read = func(into []byte, from int64) error {
			begin := time.Now().UnixNano()
			err := read(into, from)
			reads[count.Add(1)-1] = timed{begin, time.Now().UnixNano(), int64(len(into))}
			return err
		}
	}
	last := uploads[len(uploads)-1]
	arena := (last.Offset + last.Values.Bytes + 2<<20 - 1) / (2 << 20) * (2 << 20)
	machine := opened(t, made(t, executor.GPUOptions{}), parsed(t, fmt.Sprintf("device 0 arena %d budget %[1]d\n", arena)))
	link := upRate(t, machine)
	file := fixtures.Must(os.Create(*loadReads))(t)
	out := bufio.NewWriter(file)
	for range runs {
		count.Store(0)
		begin := time.Now()
		if err := machine.Upload(context.Background(), uploads, func(int64) {}); err != nil {
			t.Fatal(err)
		}
		end := time.Now()
		rate := float64(bytes) / end.Sub(begin).Seconds() / 1e9
		t.Logf("%.2f GB at %.2f GB/s, %.3f of the link's %.2f GB/s", float64(bytes)/1e9, rate, rate/link, link)
		fmt.Fprintf(out, "load\t%d\t%d\t%d\n", begin.UnixNano(), end.UnixNano(), bytes)
		for _, one := range reads[:count.Load()] {
			fmt.Fprintf(out, "read\t%d\t%d\t%d\n", one.begin, one.end, one.bytes)
		}
	}
	if err := out.Flush(); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// uploadsOf are all parameters of a model in bf16, one after the other in an arena.
func uploadsOf(t *testing.T, folder string) (uploads []executor.Upload, bytes int64) {
	t.Helper()
	graph := fixtures.Must(load.Model(folder, load.Options{}))(t)
	source := fixtures.Must(weights.Checkpoint(graph))(t)
	t.Cleanup(func() {
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	})
	ranged, _ := source.(weights.Ranged) //nolint:errcheck // nil fails below
	at := int64(0)
	for _, entry := range weights.Parameters(graph, modelgraph.BF16) {
		for _, values := range fixtures.Must(ranged.Ranges(entry.Name, modelgraph.BF16))(t) {
			uploads = append(uploads, executor.Upload{Offset: at, Values: values})
			at, bytes = at+values.Bytes, bytes+values.Bytes
		}
		at = (at + 255) / 256 * 256
	}
	return uploads, bytes
}
