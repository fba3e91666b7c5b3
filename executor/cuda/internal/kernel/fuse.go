//go:build cuda && linux && cgo && amd64

package kernel

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// The sizes of a block of kernel fused, as in fused.h. wideBytes is the shared memory of attention
// (attend.h's Wide). A slot is shared memory for slotRows rows of a weight.
const (
	fusedThreads = 12 * 32
	slotRows     = 16
	rowBytes     = 2*1024 + 64
	mostSlots    = 16
	leastSlots   = 2 // one fills while the other is read
	wideBytes    = 20 << 10
	// sharedBytes is the dynamic shared memory of a block. A block of Hopper may have 227 KiB; the
	// kernel declares the rest itself.
	sharedBytes = 222 << 10
	// mostStaged is the largest x, in bytes, that shared memory keeps as a whole. A larger x has
	// two pieces of rowBytes for each row.
	mostStaged = 80 << 10
)

// Ending is what follows a decode step's kernels. Areas are searched for NaN and infinities, with the
// result at Found as [Finite] writes it. The ids that an arg max finds go to the host, at Said for
// even positions and SaidApart bytes later for odd ones. IDs is their address. The next position is
// written. If Areas is empty, Fuse takes over nothing.
type Ending struct {
	Areas       []Area
	Found, Said driver.Address
	IDs         driver.Address
}

// SaidBytes is the room at Said, SaidApart the distance of odd positions' ids from those of even ones.
const (
	SaidApart = 4 * mostRows
	SaidBytes = 2 * SaidApart
)

// Fuse returns launches that do the work of a decode step's kernels in order. Kernel fused takes
// over the operations that it has, in as few launches as possible. The other kernels keep their
// launches. If there is no room for one of the operations, all kernels keep their launches.
// ended: the last launch does all that the ending asks for, and sets IDs.
func Fuse(kernels *Kernels, calls []*Call, launches []Launch, ending *Ending) (out []Launch, ended bool, err error) {
	if !kernels.hopper {
		return launches, false, nil
	}
	out, err = fuse(calls, launches, func(ops []*operation, last bool) (Launch, error) {
		ended = last && ending.takes(ops[len(ops)-1])
		return kernels.fused(ops)
	})
	if errors.Is(err, errCapacity) {
		return launches, false, nil
	}
	return out, ended, err
}

// takes has the arg max do what the ending asks for. It reports false if there is another area to
// search than its logits, or no arg max.
func (ending *Ending) takes(pick *operation) bool {
	found, logits := false, &pick.parts[0]
	for i := range ending.Areas {
		if area := &ending.Areas[i]; area.Looked {
			found, pick.area = true, int64(i)
			if area.Address != logits.to || area.Rows != pick.rows || area.Columns != logits.rows {
				return false
			}
		}
	}
	if !found || pick.kind != pickKind {
		return false
	}
	pick.foundAt, pick.said, ending.IDs = ending.Found, ending.Said, pick.ids
	return true
}

// fuse replaces launches of calls by those of operations with equal rows that follow each other.
// last: no kernel follows.
func fuse(calls []*Call, launches []Launch, fused func(ops []*operation, last bool) (Launch, error)) ([]Launch, error) {
	var out []Launch
	var run []*operation
	list := &recognizer{calls: calls}
	end := func() error {
		if len(run) == 0 {
			return nil
		}
		launch, err := fused(run, list.at == len(calls))
		out, run = append(out, launch), nil
		return err
	}
	for list.at < len(calls) {
		ops, count := list.next()
		if count == 0 || len(run) > 0 && ops[0].rows != run[0].rows {
			if err := end(); err != nil {
				return nil, err
			}
		}
		if count == 0 {
			out = append(out, launches[list.at])
			count = 1
		}
		run = append(run, ops...)
		list.at += count
	}
	err := end()
	return out, err
}

// errCapacity: the operations do not fit into the GPU's table or a block's shared memory.
var errCapacity = errors.New("there is no room for the operations of a decode step")

// fused prepares a launch of operations.
func (kernels *Kernels) fused(ops []*operation) (Launch, error) {
	slots := kernels.share(ops)
	if slots < leastSlots {
		return nil, errCapacity
	}
	table, capacity, unfound := kernels.global("fused_90", "table")
	place, unplaced := kernels.place()
	function, err := kernels.Function("fused")
	if err := errors.Join(unfound, unplaced, err); err != nil {
		return nil, err
	}
	if err := function.Share(sharedBytes); err != nil {
		return nil, err
	}
	arrived := table + driver.Address(kernels.modules.taken)
	data := pack(ops, arrived, kernels.processors)
	if kernels.modules.taken+int64(len(data)) > capacity {
		return nil, errCapacity
	}
	if err := upload(arrived, data); err != nil {
		return nil, err
	}
	kernels.modules.taken += int64(len(data))
	argument := new(driver.Arguments) // Fused of fused_90.cu
	argument.Address(arrived + headBytes).Int64(int64(len(ops))).Int64(ops[0].rows).Int64(slots).Address(arrived).Address(place)
	shape := driver.Shape{Grid: [3]uint32{uint32(kernels.processors), 1, 1}, Block: [3]uint32{fusedThreads, 1, 1}, Shared: sharedBytes}
	return func(step *schedule.Args) error { return streamOf(step).Together(function, shape, argument) }, nil
}

// headBytes is how many bytes the word at which blocks meet takes before the operations, with the
// number of the launch after it.
const headBytes = 16

// pack lays out the table of a launch at an address: the word at which blocks meet, the operations,
// the frequencies of each rotation, and room for the largest results of each block.
func pack(ops []*operation, at driver.Address, blocks int) []byte {
	end := headBytes + len(ops)*operationBytes
	var more []byte
	for _, op := range ops {
		if op.picks { // a product and its arg max, which share the room
			more = make([]byte, op.rows*int64(blocks)*8)
			op.sums = span{at + driver.Address(end), int64(2 * blocks)}
		}
	}
	for _, op := range ops {
		if op.found == nil {
			continue
		}
		op.turn, op.factor = at+driver.Address(end+len(more)), op.found.factor
		for _, value := range op.found.inverse {
			more = binary.LittleEndian.AppendUint32(more, math.Float32bits(value))
		}
	}
	data := make([]byte, headBytes, end+len(more))
	data[4] = 1 // the first launch
	for _, op := range ops {
		data = append(data, unsafe.Slice((*byte)(unsafe.Pointer(op)), operationBytes)...)
	}
	data = append(data, more...)
	return append(data, make([]byte, -len(data)&15)...)
}

// share divides a block's shared memory: it returns how many slots there is room for. It sets the
// tiles of operations, and whose x is kept there as a whole.
func (kernels *Kernels) share(ops []*operation) (slots int64) {
	staged, first := int64(wideBytes), int64(0)
	for _, op := range ops {
		op.count()
		op.first = first
		if op.kind > turnedKind {
			continue
		}
		first = (first + op.tiles) % int64(kernels.processors)
		size := op.rows * op.stretch()
		if op.norm != 0 {
			size += op.stretch()
		}
		if op.norm != 0 || size <= mostStaged {
			op.staged = 1
		} else {
			size = 2 * op.rows * rowBytes
		}
		staged = max(staged, size)
	}
	sums := 2 * 8 * 16 * ops[0].rows * 4
	return min(mostSlots, (sharedBytes-staged-sums)/(slotRows*rowBytes))
}

// upload writes into the GPU's memory, and waits.
func upload(at driver.Address, data []byte) (err error) {
	pinned, err := driver.Pin(int64(len(data)))
	if err != nil {
		return err
	}
	copy(pinned.Data, data)
	stream, err := driver.NewStream()
	if err != nil {
		return errors.Join(err, pinned.Free())
	}
	return errors.Join(stream.Up(at, pinned.Data), stream.Synchronize(), stream.Destroy(), pinned.Free())
}
