//go:build cuda && linux && cgo && amd64

package cuda

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
)

var (
	tuneBytes   = flag.Int64("tune-bytes", 2<<30, "of each GPU's file, in TestTuneUpload")
	tuneGPUs    = flag.Int("tune-gpus", 0, "how many take part; 0: all")
	tuneSeconds = flag.Float64("tune-seconds", 30, "after which TestTuneUpload begins with no other shape")
	tuneFolder  = flag.String("tune-folder", ".", "where its files lie")
)

// TestTuneUpload measures shapes of rings and numbers of readers, to choose both. Each GPU
// loads from a file of its own in the page cache, all at once. The test compares that with
// copies from pinned memory, with reading alone, and with a ring for which nothing is read.
// Every line is in GB/s of all GPUs together. A ring's line has the slowest and the fastest
// of three times, and the median share of the links (at best).
func TestTuneUpload(t *testing.T) {
	onGPU(t)
	gpus := len(described(t))
	if *tuneGPUs > 0 {
		gpus = min(gpus, *tuneGPUs)
	}
	start := time.Now()
	tuning := tuned(t, gpus)
	t.Logf("%d GPUs, %d processors; memory nodes %s, of NVIDIA's devices %s", gpus, runtime.GOMAXPROCS(0),
		first("/sys/devices/system/node/online"), first("/sys/bus/pci/drivers/nvidia/*/numa_node"))
	t.Logf("files are made and GPUs open after %.1f s", time.Since(start).Seconds())
	t.Logf("copies of pinned memory, all at once: %.1f", tuning.links)
	for _, readers := range []int{1, 8, 15, 30, 45, 60} {
		if readers > 1 && readers >= runtime.GOMAXPROCS(0) {
			break
		}
		t.Logf("reading alone in steps of 256 KiB, %2d readers: %6.1f, summed up too %6.1f", readers,
			tuning.reading(readers, 256<<10, false), tuning.reading(readers, 256<<10, true))
	}
	for _, readers := range []int{0, 30, 44} {
		copied, read := tuning.both(readers)
		t.Logf("copies of pinned memory beside %2d that read alone: %.1f and %.1f, %.1f in all", readers, copied, read, copied+read)
	}
	taken, usual := transfer.ShapeFor(gpus), workersFor(gpus).Readers
	for _, bytes := range []int{16, 32, 64, 128, 256} {
		t.Logf("reading and summing up by turns into %3d MiB, %d readers: %6.1f", bytes, gpus*usual, tuning.turning(gpus*usual, bytes<<20))
	}
	best, most := taken, tuning.tell(taken, usual, "", ranges)
	tuning.tell(taken, usual, ", nothing read, only summed up", unread)
	for _, shape := range shapes(taken) {
		if time.Since(start).Seconds() > *tuneSeconds-6 {
			t.Log("the rest of the shapes is left out: their time is over")
			break
		}
		if rate := tuning.tell(shape, usual, "", ranges); rate > most {
			best, most = shape, rate
		}
	}
	for _, shape := range slices.Compact([]transfer.Shape{best, taken}) {
		for _, readers := range []int{7, 8, 9, 10, 12, 14, 15} {
			if (readers+1)*gpus <= runtime.GOMAXPROCS(0) && readers != usual && time.Since(start).Seconds() < *tuneSeconds {
				tuning.tell(shape, readers, "", ranges)
			}
		}
	}
}

// first are the lines with which files begin.
func first(pattern string) string {
	paths, _ := filepath.Glob(pattern)
	var lines []string
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		line, _, _ := strings.Cut(string(text), "\n")
		lines = append(lines, line)
	}
	return strings.Join(lines, " ")
}

// tell tells what GPUs take through rings of a shape, and is the rate in the middle.
func (tuning *tuning) tell(shape transfer.Shape, readers int, what string, of rangesOf) float64 {
	if tuning.shape != shape {
		tuning.cut(shape)
	}
	found := tuning.rates(readers, shape.Share, of)
	most, middle := found[len(found)-1], found[len(found)/2]
	tuning.Logf("rings of %3d MiB, %2d × %4d KiB, shares of %4d KiB, copied %2d behind, %2d readers a GPU%s: %.1f to %.1f, %.3f of the links (%.3f)",
		len(tuning.files)*shape.Parts*shape.Size>>20, shape.Parts, shape.Size>>10, shape.Share>>10, shape.Behind, readers, what,
		found[0], most, middle/tuning.links, most/tuning.links)
	return middle
}

// shapes returns the shapes to try other than the current one, the likeliest first. Rings stay in
// caches together or do not. They have many parts, which cost calls, or few. Copies begin soon
// after the write, or when the data has left its writers' caches.
func shapes(taken transfer.Shape) (all []transfer.Shape) {
	const mega, least, most = 1 << 20, 3, 64
	for _, share := range []int{128 << 10, 512 << 10, 256 << 10} {
		for _, ring := range []int{24 * mega, 64 * mega, 16 * mega, 32 * mega} {
			for _, size := range []int{mega, 8 * mega, 2 * mega, 4 * mega} {
				for _, part := range []int{0, 2, 3, 5} {
					parts := ring / size
					shape := transfer.Shape{Parts: parts, Size: size, Share: share, Behind: parts * part / 6}
					if parts >= least && parts <= most && size >= 2*share && shape != taken {
						all = append(all, shape)
					}
				}
			}
		}
	}
	return all
}
