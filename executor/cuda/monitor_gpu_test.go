//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestGPURefill: one allocation can take all free memory of a GPU but a margin, again and
// again. The GPU has as much free memory after it. The test prints how small the margin
// may be, and how long each part takes.
func TestGPURefill(t *testing.T) {
	onGPU(t)
	begin := time.Now()
	monitor := fixtures.Must(NewMonitor([]int{0}))(t)
	seen := func() executor.MemoryReading {
		all := fixtures.Must(monitor.Look())(t)
		return all[0]
	}
	t.Logf("%+v in %v", monitor.GPUs()[0], time.Since(begin))
	begin = time.Now()
	before := seen()
	t.Logf("free %d in %v", before.DriverFree, time.Since(begin))
	if before.NVMLUsed != nil && before.Own != nil {
		t.Logf("used %d, by this process %d", *before.NVMLUsed, *before.Own)
	}
	for _, margin := range []int64{0, 1 << 20, 2 << 20, 4 << 20, 6 << 20, 8 << 20, 12 << 20, 16 << 20, 16 << 20, 16 << 20, 32 << 20} {
		done, err := monitor.Refill(0, margin)
		if err != nil {
			t.Fatal(err)
		}
		now := seen()
		t.Logf("margin %d: %d of %d in %v, refused %v, wrong %v; free behind it %+d", margin, done.Bytes, done.FreeBytes, done.Took, done.Refused, done.Wrong, now.DriverFree-before.DriverFree)
		if margin >= 16<<20 && (done.Refused != nil || done.Wrong || now.DriverFree < before.DriverFree) {
			t.Errorf("margin %d: %+v, free %d, before %d", margin, done, now.DriverFree, before.DriverFree)
		}
	}
	// Mapped memory shows in the figures of the driver, of NVML and of this process.
	gpu := &described(t)[0]
	context, err := gpu.Retain()
	if err != nil {
		t.Fatal(err)
	}
	err = context.Within(func() error {
		arena, err := gpu.Map(1 << 30)
		if err != nil {
			return err
		}
		with := seen()
		t.Logf("an arena of 1 GiB: free %+d", with.DriverFree-before.DriverFree)
		if with.NVMLUsed != nil && with.Own != nil && before.Own != nil {
			t.Logf("used %+d, by this process %+d", *with.NVMLUsed-*before.NVMLUsed, *with.Own-*before.Own)
		}
		begin := time.Now()
		if err := arena.Release(); err != nil {
			return err
		}
		for range 50 {
			now := seen()
			t.Logf("%v behind the release: free %+d", time.Since(begin), now.DriverFree-before.DriverFree)
			if now.NVMLUsed != nil {
				t.Logf("used %+d", *now.NVMLUsed-*before.NVMLUsed)
			}
			if now.DriverFree >= before.DriverFree && (now.NVMLUsed == nil || *now.NVMLUsed <= *before.NVMLUsed) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	})
	if err := errors.Join(err, context.Release(), monitor.Close()); err != nil {
		t.Error(err)
	}
}
