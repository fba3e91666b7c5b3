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

// pinRings begins to pin every GPU's ring, which takes some milliseconds a GPU: it ends
// while arenas are mapped and kernels run once, before anything is to be loaded.
func (loader loader) pinRings() error {
	for _, gpu := range loader.gpus {
		gpu.ring.Make(loader.on(gpu)[0].context)
	}
	return nil
}

// prime makes the ring ready, with what pours into it.
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

// Pour implements [executor.Pourer]. Each GPU's values go through a ring of its own, as
// fast as its link takes them: none waits for another GPU's copies.
func (loader loader) Pour(ctx context.Context, loads []executor.Pour, onProgress func(bytes int64)) error {
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
	var lock sync.Mutex // of told
	var all sync.WaitGroup
	for gpu, own := range byGPU {
		all.Go(func() {
			err := gpu.ring.Upload(ctx, own, workersFor(len(byGPU)), loader.options.Patience, func(bytes int64) {
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
		return &executor.HangError{After: late.After, Stand: "it is at a copy of " + late.Place}
	}
	return err
}

// handsFor is who pours for each of some GPUs at once. One processor is a pump's. While one
// is idle Go takes none from a reader that is in the kernel (runtime/proc.go: retake): by 15
// readers on 16 processors one GPU got 38 to 44 GB/s, by 12 it got 46 to 49. Twelve read more
// than a link takes, and who has nothing to read to waits awake. Thirty read more than the
// host's memory gives them beside copies; more of them take from the copies, and much where
// others want the processors too: of 64 onto four GPUs 7 each got 75 to 96 GB/s whenever it
// was tried, 10 got 54 to 102, 14 got 29 to 94 (TestTunePour).
func workersFor(gpus int) transfer.Workers {
	const most, all = 12, 30
	processors := runtime.GOMAXPROCS(0)
	readers := max(1, min(most, all/gpus, (processors-1)/gpus-1))
	return transfer.Workers{Readers: readers, Crowded: gpus*(readers+1) > processors}
}
