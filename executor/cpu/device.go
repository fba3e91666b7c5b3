package cpu

import (
	"time"

	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// device is a device of the program, as a [schedule.Driver]: an arena, and queues whose calls have
// ended when they return.
type device struct {
	*machine
	number int
	arena  []byte
	// operands are a kernel's, reused so that a step leaves no garbage.
	operands []kernel.Matrix
}

func (*device) Place() string { return "this machine's processor" }

// Address gives each device its own range of 2^48 bytes, more than an arena has.
func (device *device) Address(offset int64) schedule.Address {
	return schedule.Address(device.number)<<48 + schedule.Address(offset)
}

func (device *device) NewQueue() (schedule.Queue, error) { return queue{device.machine}, nil }

func (*device) NewEvent(bool) (schedule.Event, error) { return new(event), nil }

func (*device) Pin(bytes int64) (schedule.Pinned, error) { return make(memoryOfHost, bytes), nil }

// memoryOfHost is memory as any other.
type memoryOfHost []byte

func (memory memoryOfHost) Bytes() []byte { return memory }

func (memoryOfHost) Free() error { return nil }

func (*device) Use() error { return nil }

func (*device) Lost(err error) error { return err }

func (*device) Fenced() {}

func (*device) Carry(queue schedule.Queue, to []byte, from schedule.Address) ([]byte, error) {
	return to, queue.Down(to, from)
}

// queue runs calls at once.
type queue struct{ *machine }

func (queue) Record(of schedule.Event) error {
	*of.(*event) = event{time.Now()} //nolint:errcheck,forcetypeassert // there are no others
	return nil
}

func (queue) Await(schedule.Event) error { return nil }

func (queue queue) Copy(to, from schedule.Address, bytes int64) error {
	copy(queue.bytes(to, bytes), queue.bytes(from, bytes))
	return nil
}

func (queue queue) Fill(at schedule.Address, value byte, bytes int64) error {
	fill(queue.bytes(at, bytes), value)
	return nil
}

func (queue queue) bytes(at schedule.Address, bytes int64) []byte {
	offset := int64(at & (1<<48 - 1))
	return queue.arenas[at>>48][offset : offset+bytes]
}

func (queue queue) Up(to schedule.Address, from []byte) error {
	copy(queue.bytes(to, int64(len(from))), from)
	return nil
}

func (queue queue) Down(to []byte, from schedule.Address) error {
	copy(to, queue.bytes(from, int64(len(to))))
	return nil
}

func (queue) Destroy() error { return nil }

// event is the moment at which it was recorded.
type event struct{ at time.Time }

func (*event) Ended() (bool, error) { return true, nil }

func (later *event) Since(begin schedule.Event) (time.Duration, error) {
	return later.at.Sub(begin.(*event).at), nil //nolint:errcheck,forcetypeassert // there are no others
}

func (*event) Destroy() error { return nil }
