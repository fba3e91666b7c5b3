//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// Pour implements [executor.Pourer]. As many readers as there are processors fill a
// part of the ring each. Who has filled one gives the GPU the copy, and behind it, on
// a stream beside, a kernel that sums up what came; whoever needs a part takes that
// of the oldest copy, when the GPU's sum was compared with the one of what was read.
func (machine *machine) Pour(ctx context.Context, pours []executor.Pour, told func(bytes int64)) error {
	pieces, err := machine.pieces(pours)
	if err != nil || len(pieces) == 0 {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pouring := &pouring{
		machine: machine, context: ctx, stop: stop, pieces: pieces,
		told: make(chan int64, machine.ring.count), flying: make(chan *poured, machine.ring.count),
	}
	go func() {
		var readers sync.WaitGroup
		for range min(runtime.GOMAXPROCS(0), len(pieces)) {
			readers.Go(pouring.read)
		}
		readers.Wait()
		pouring.settle()
		close(pouring.told)
	}()
	for bytes := range pouring.told {
		told(bytes)
	}
	err = context.Cause(ctx)
	var hang *HangError
	machine.hung = errors.As(err, &hang)
	return err
}

// piece is values that lie in a part of the ring together.
type piece struct {
	*executor.Pour
	device   *device
	from, to int64 // of the values' bytes
}

// pieces cuts what is to be poured, in turns for each device: their links are
// filled alike.
func (machine *machine) pieces(pours []executor.Pour) ([]piece, error) {
	of, most := make([][]piece, len(machine.devices)), 0
	for i := range pours {
		pour := &pours[i]
		device, err := machine.place(pour.Device, pour.Offset, pour.Values.Bytes)
		if err != nil {
			return nil, err
		}
		size := int64(machine.ring.size)
		for from := int64(0); from < pour.Values.Bytes; from += size {
			of[pour.Device] = append(of[pour.Device], piece{pour, device, from, min(from+size, pour.Values.Bytes)})
		}
		most = max(most, len(of[pour.Device]))
	}
	var all []piece
	for turn := range most {
		for device := range of {
			if turn < len(of[device]) {
				all = append(all, of[device][turn])
			}
		}
	}
	return all, nil
}

// prime makes the ring, and has every GPU run kernel checksum once: it is loaded as
// it runs first.
func (machine *machine) prime() error {
	if err := machine.allot("cuMemHostRegister"); err != nil {
		return err
	}
	for _, device := range machine.devices {
		if err := device.do(device.prime); err != nil {
			return err
		}
	}
	return nil
}

func (device *device) prime() (err error) {
	if device.checksum, err = device.kernels.Function("checksum"); err != nil || device.arena == nil {
		return err
	}
	part, err := device.part()
	if err != nil {
		return err
	}
	device.flights = append(device.flights, flight{part: part})
	return device.landAll(device.check(part, 0, wordSize))
}

// check has the GPU sum up bytes of the arena behind what the host's stream was
// given, on a stream of the program's, which has nothing else to do: the next copy
// need not wait for it. The event is then that of the sums.
func (device *device) check(part *part, offset int64, size int) error {
	event, stream := device.events[part.number], device.host
	if err := stream.Record(event); err != nil {
		return err
	}
	if len(device.streams) > 0 {
		stream = device.streams[0]
	}
	var arguments driver.Arguments
	arguments.Address(device.at(offset)).Int64(int64(size)).Address(part.at)
	shape := driver.Shape{Grid: [3]uint32{uint32(blocksOf(size)), 1, 1}, Block: [3]uint32{256, 1, 1}}
	return errors.Join(stream.Await(event), stream.Launch(device.checksum, shape, &arguments), stream.Record(event))
}

// differs is the error of a piece that is not in the arena as it was read.
func (poured *poured) differs(found checksum.Sums) error {
	return fmt.Errorf("%s: bytes %d to %d of its values are not in the arena of device %d on %s as they were read: their checksum is %v, and was %v",
		poured.Values.Place, poured.from, poured.to, poured.device.plan.ID, poured.device.gpu.place(), found, poured.sums)
}
