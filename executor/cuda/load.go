//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
)

// loader fills arenas through the rings of their GPUs.
type loader struct{ *arenas }

// pinRings begins to pin every GPU's ring, which takes some milliseconds a GPU. It ends while
// arenas are mapped and kernels run once, before anything is loaded.
func (loader loader) pinRings() error {
	for _, gpu := range loader.gpus {
		gpu.ring.Make(loader.on(gpu)[0].context)
	}
	return nil
}

// prime prepares the ring, and its end on every device.
func (loader loader) prime() error {
	if err := loader.allots.allot("cuMemHostRegister"); err != nil {
		return err
	}
	for _, device := range loader.devices {
		if device.arena == nil {
			continue
		}
		if err := device.do(func() error { return device.end.Prime(device.kernels) }); err != nil {
			return err
		}
	}
	return nil
}

// Upload implements [executor.Uploader]. Each GPU's values go through its own ring, as fast as its
// link takes them: no GPU waits for the copies of another.
func (loader loader) Upload(ctx context.Context, loads []executor.Upload, onProgress func(bytes int64)) error {
	byGPU := make(map[*gpu][]transfer.Load)
	for i := range loads {
		device, err := loader.place(loads[i].Device, loads[i].Offset, loads[i].Values.Bytes)
		if err != nil {
			return err
		}
		byGPU[device.gpu] = append(byGPU[device.gpu], transfer.Load{End: device.end, Offset: loads[i].Offset, Values: loads[i].Values})
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var lock sync.Mutex // of onProgress
	var all sync.WaitGroup
	for gpu, own := range byGPU {
		all.Go(func() {
			err := gpu.ring.Upload(ctx, own, workersFor(len(byGPU)), loader.options.StallLimit, func(bytes int64) {
				lock.Lock()
				defer lock.Unlock()
				onProgress(bytes)
			})
			if err != nil {
				stop(err) // of all
			}
		})
	}
	all.Wait()
	err := context.Cause(ctx)
	var late *transfer.LateError
	if errors.As(err, &late) {
		loader.left = true
		return &executor.HangError{After: late.After, State: "it is at a copy of " + late.Place}
	}
	return err
}

// workersFor returns the workers of each of some GPUs that load at once. The pump needs one
// processor. While another is idle, Go takes none from a reader that is in the kernel
// (runtime/proc.go: retake). Ten readers on 16 processors read more than a link takes. With 12, single
// loads were up to a quarter slower, and with 15 all were a third slower.
//
// One without a free part waits awake. Thirty readers read more than the host's memory provides during
// copies. More readers slow the copies down, and much if other processes need the processors. Four
// GPUs on 64 processors got 75 to 96 GB/s with 7 readers each (TestTuneUpload). They got 54 to 102
// GB/s with 10, and 29 to 94 with 14.
func workersFor(gpus int) transfer.Workers {
	const one, several, all = 10, 12, 30
	processors, most := runtime.GOMAXPROCS(0), several
	if gpus == 1 {
		most = one
	}
	readers := max(1, min(most, all/gpus, (processors-1)/gpus-1))
	return transfer.Workers{Readers: readers, Crowded: gpus*(readers+1) > processors}
}
