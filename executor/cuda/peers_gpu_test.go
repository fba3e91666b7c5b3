//go:build cuda && linux && cgo && amd64

package cuda

import (
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestGPUPeers: copies from every GPU to every other one, each way alone, as large as
// messages are and larger. Its lines are what `make gpu` holds to PyTorch's copies:
// from, to, bytes, bytes a second, seconds of latency.
func TestGPUPeers(t *testing.T) {
	onGPU(t)
	if err := driver.Open(); err != nil {
		t.Fatal(err)
	}
	gpus := fixtures.Must(driver.Devices())(t)
	ordinals := make([]int, len(gpus))
	for i := range ordinals {
		ordinals[i] = i
	}
	for _, bytes := range []int64{8 << 20, 16 << 20, 256 << 20} {
		found := fixtures.Must(paths(ordinals, bytes))(t)
		for from := range found {
			for to, rate := range found[from].To {
				if from != to {
					t.Logf("copy %d %d %d %.0f %.3g staged %t", from, to, bytes, rate.BytesPerSecond, rate.Latency, rate.Staged)
				}
			}
		}
	}
}
