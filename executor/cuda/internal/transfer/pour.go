//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/weights"
)

// Load is values and the place in an arena that they are for.
type Load struct {
	End    *End
	Offset int64
	Values weights.Range
}

// LateError is a copy that does not end.
type LateError struct {
	After time.Duration
	Place string // what is copied
}

func (err *LateError) Error() string {
	return fmt.Sprintf("%s: its copy did not end within %v", err.Place, err.After)
}

// Pour reads values and returns when arenas have them, whose ends are primed. Readers
// fill parts of the ring together, a share each. Who has filled one up gives the GPU the
// copy, and behind it, on a stream beside, a kernel that sums up what came; whoever needs
// a part takes that of the oldest copy, when the GPU's sum was compared with the one of
// what was read. told is called with how many bytes more are there. A copy that takes
// longer than patience is given up ([*LateError]), and the ring with it.
func (ring *Ring) Pour(ctx context.Context, loads []Load, readers int, patience time.Duration, told func(bytes int64)) error {
	ring.pouring.Lock() // who has some of the parts gets all of them
	defer ring.pouring.Unlock()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pouring := ring.newPouring(ring.pieces(loads), readers)
	pouring.context, pouring.stop, pouring.patience = ctx, stop, patience
	context.AfterFunc(ctx, func() { pouring.stopped.Store(true) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pouring.readAll(readers)
		pouring.settle()
		close(pouring.told)
	}()
	often := time.NewTicker(time.Millisecond)
	defer often.Stop()
	for bytes := range pouring.told {
		told(bytes)
		if len(pouring.told) > 0 {
			continue
		}
		select { // whom every piece wakes takes a processor from readers
		case <-often.C:
		case <-ended:
		}
	}
	return context.Cause(ctx)
}

// piece is values that lie in a part of the ring together.
type piece struct {
	*Load
	from, to int64 // of the values' bytes
}

// pieces cuts what is to be poured, in turns for each end: their links are filled
// alike.
func (ring *Ring) pieces(loads []Load) (all []piece) {
	turns, most := make(map[*End][]piece), 0
	var ends []*End
	for i := range loads {
		load := &loads[i]
		if turns[load.End] == nil {
			ends = append(ends, load.End)
		}
		size := int64(ring.size)
		for from := int64(0); from < load.Values.Bytes; from += size {
			turns[load.End] = append(turns[load.End], piece{load, from, min(from+size, load.Values.Bytes)})
		}
		most = max(most, len(turns[load.End]))
	}
	for turn := range most {
		for _, end := range ends {
			if turn < len(turns[end]) {
				all = append(all, turns[end][turn])
			}
		}
	}
	return all
}

// check has the GPU sum up bytes of the arena behind what the stream was given, on
// the one beside it: the next copy need not wait. The part's event is then that of
// the sums.
func (end *End) check(part *part, offset int64, size int) error {
	event := end.events[part.number]
	if err := end.Stream.Record(event); err != nil {
		return err
	}
	if err := end.Beside.Await(event); err != nil {
		return err
	}
	var arguments driver.Arguments
	arguments.Address(end.at(offset)).Int64(int64(size)).Address(part.at)
	shape := driver.Shape{Grid: [3]uint32{uint32(blocksOf(size)), 1, 1}, Block: [3]uint32{256, 1, 1}}
	if err := end.Beside.Launch(end.checksum, shape, &arguments); err != nil {
		return err
	}
	return end.Beside.Record(event)
}

// differs is the error of a piece that is not in the arena as it was read.
func (poured *poured) differs(found checksum.Sums) error {
	return fmt.Errorf("%s: bytes %d to %d of its values are not in the arena of %s as they were read: their checksum is %v, and was %v",
		poured.Values.Place, poured.from, poured.to, poured.End.Name, found, poured.sums)
}
