package schedule

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// fake is a backend whose queues carry nothing out before somebody asks for an event:
// then some of their calls run, of a random queue that may be far ahead of the others.
type fake struct {
	lock   sync.Mutex
	random *rand.Rand
	arenas [][]byte
	queues []*fakeQueue
	live   map[any]bool // queues, events and memory that were not released
	ticks  int64        // calls that ran
	ahead  int          // the queue that goes first
	fails  int          // which call of the driver fails, from 1; 0: none
	calls  int
	dead   map[int]bool // devices that answer no more
}

var errFake = errors.New("the fake fails")

// call counts a call of the driver.
func (fake *fake) call() error {
	fake.calls++
	if fake.calls == fake.fails {
		return errFake
	}
	return nil
}

// hold notes something that must be released.
func (fake *fake) hold(what any) error {
	fake.lock.Lock()
	defer fake.lock.Unlock()
	if err := fake.call(); err != nil {
		return err
	}
	fake.live[what] = true
	return nil
}

func (fake *fake) give(what any) error {
	fake.lock.Lock()
	defer fake.lock.Unlock()
	if !fake.live[what] {
		return errors.New("it is not held")
	}
	delete(fake.live, what)
	return nil
}

// fakeDevice is a [Driver].
type fakeDevice struct {
	*fake
	number, gpu int
	fences      int
}

func (device *fakeDevice) Place() string { return "GPU " + string(rune('0'+device.gpu)) }

func (device *fakeDevice) Address(offset int64) Address {
	return Address(device.number)<<48 + Address(offset)
}

func (device *fakeDevice) NewQueue() (Queue, error) {
	queue := &fakeQueue{fake: device.fake, device: device.number}
	if err := device.hold(queue); err != nil {
		return nil, err
	}
	device.lock.Lock()
	defer device.lock.Unlock()
	device.queues = append(device.queues, queue)
	return queue, nil
}

func (device *fakeDevice) NewEvent(timed bool) (Event, error) {
	event := &fakeEvent{fake: device.fake, device: device.number, timed: timed}
	if err := device.hold(event); err != nil {
		return nil, err
	}
	return event, nil
}

func (*fakeDevice) Carry(queue Queue, to []byte, from Address) ([]byte, error) {
	return to, queue.Down(to, from)
}

func (device *fakeDevice) Pin(bytes int64) (Pinned, error) {
	pinned := &fakePinned{device.fake, make([]byte, bytes)}
	if err := device.hold(pinned); err != nil {
		return nil, err
	}
	return pinned, nil
}

func (device *fakeDevice) Use() error { return nil }

func (device *fakeDevice) Fenced() { device.fences++ }

func (device *fakeDevice) Lost(err error) error {
	if lost := (*executor.LostError)(nil); errors.Is(err, errDead) && !errors.As(err, &lost) {
		return &executor.LostError{GPUs: []string{device.Place()}, Err: errDead}
	}
	return err
}

var errDead = errors.New("the context is no more")

type fakePinned struct {
	*fake
	data []byte
}

func (pinned *fakePinned) Bytes() []byte { return pinned.data }

func (pinned *fakePinned) Free() error { return pinned.give(pinned) }

// fakeMoment is when an event was recorded, done when its queue came there.
type fakeMoment struct {
	done bool
	at   int64
}

type fakeEvent struct {
	*fake
	device int
	timed  bool
	last   *fakeMoment
}

func (event *fakeEvent) Ended() (bool, error) {
	event.lock.Lock()
	defer event.lock.Unlock()
	if event.dead[event.device] {
		return false, errDead
	}
	event.advance(event.random.IntN(4))
	return event.last == nil || event.last.done, nil
}

func (event *fakeEvent) Since(begin Event) (time.Duration, error) {
	from := begin.(*fakeEvent) //nolint:errcheck,forcetypeassert // there are no others
	if !event.timed || !from.timed || event.device != from.device || !event.last.done || !from.last.done {
		return 0, errors.New("these events tell no time")
	}
	return time.Duration(event.last.at - from.last.at), nil
}

func (event *fakeEvent) Destroy() error { return event.give(event) }

// fakeQueue is a [Queue].
type fakeQueue struct {
	*fake
	device int
	lines  []fakeLine
}

// fakeLine waits for a moment, or does something; stuck: it never ends.
type fakeLine struct {
	waits *fakeMoment
	does  func()
	stuck bool
}

func (queue *fakeQueue) add(line fakeLine) error {
	queue.lock.Lock()
	defer queue.lock.Unlock()
	if err := queue.call(); err != nil {
		return err
	}
	queue.lines = append(queue.lines, line)
	return nil
}

// advance runs some calls of queues that can go on.
func (fake *fake) advance(count int) {
	for range count {
		if fake.random.IntN(32) == 0 {
			fake.ahead = fake.random.IntN(len(fake.queues))
		}
		for _, at := range append([]int{fake.ahead}, fake.random.Perm(len(fake.queues))...) {
			queue := fake.queues[at]
			if len(queue.lines) == 0 || queue.lines[0].stuck || queue.lines[0].waits != nil && !queue.lines[0].waits.done {
				continue
			}
			fake.ticks++
			if does := queue.lines[0].does; does != nil {
				does()
			}
			queue.lines = queue.lines[1:]
			break
		}
	}
}

func (queue *fakeQueue) Record(event Event) error {
	of, moment := event.(*fakeEvent), new(fakeMoment) //nolint:errcheck,forcetypeassert // there are no others
	if of.device != queue.device {
		return errors.New("it is another device's event")
	}
	queue.lock.Lock()
	of.last = moment
	queue.lock.Unlock()
	return queue.add(fakeLine{does: func() { *moment = fakeMoment{true, queue.ticks} }})
}

func (queue *fakeQueue) Await(event Event) error {
	queue.lock.Lock()
	moment := event.(*fakeEvent).last //nolint:errcheck,forcetypeassert // there are no others
	queue.lock.Unlock()
	return queue.add(fakeLine{waits: moment})
}

func (queue *fakeQueue) bytes(at Address, bytes int64) []byte {
	offset := int64(at & (1<<48 - 1))
	return queue.arenas[at>>48][offset : offset+bytes]
}

func (queue *fakeQueue) Copy(to, from Address, bytes int64) error {
	return queue.add(fakeLine{does: func() { copy(queue.bytes(to, bytes), queue.bytes(from, bytes)) }})
}

func (queue *fakeQueue) Fill(at Address, value byte, bytes int64) error {
	return queue.add(fakeLine{does: func() {
		for i := range queue.bytes(at, bytes) {
			queue.bytes(at, bytes)[i] = value
		}
	}})
}

func (queue *fakeQueue) Up(to Address, from []byte) error {
	return queue.add(fakeLine{does: func() { copy(queue.bytes(to, int64(len(from))), from) }})
}

func (queue *fakeQueue) Down(to []byte, from Address) error {
	return queue.add(fakeLine{does: func() { copy(to, queue.bytes(from, int64(len(to)))) }})
}

func (queue *fakeQueue) Destroy() error { return queue.give(queue) }

// opened is a program on the fake's devices, device i on a GPU; its instructions make
// bytes out of all that they read ([makes]).
func opened(of *program.Program, on []int, staged bool, seed uint64, fails int) (*Scheduler, *fake, error) {
	fake := &fake{random: rand.New(rand.NewPCG(seed, 1)), live: make(map[any]bool), fails: fails, dead: make(map[int]bool)}
	var scheduler *Scheduler
	scheduler = New(of, Options{
		Past:       func(int32) int64 { return 0 },
		StallLimit: time.Hour,
		Work: func(index int32) (*Work, error) {
			device := int(of.Instrs[index].Device)
			toy := func(args *Args) error {
				return args.Queue.(*fakeQueue).add(fakeLine{does: func() { makes(of, index, fake.arenas[device]) }}) //nolint:errcheck,forcetypeassert // there are no others
			}
			return &Work{calls: []Call{toy}, taps: []int{0, 1}}, nil
		},
		Lost: func() (lost []Place) {
			for _, device := range scheduler.Devices {
				if fake.dead[device.Driver.(*fakeDevice).number] { //nolint:errcheck,forcetypeassert // there are no others
					lost = append(lost, Place{device.Driver.Place(), []*Device{device}})
				}
			}
			return lost
		},
	})
	for i := range of.Devices {
		arena := make([]byte, of.Devices[i].Arena)
		for at := range arena {
			arena[at] = executor.Poison
		}
		fake.arenas = append(fake.arenas, arena)
		scheduler.Devices = append(scheduler.Devices, NewDevice(&of.Devices[i], &fakeDevice{fake: fake, number: i, gpu: on[i]}))
	}
	for _, device := range scheduler.Devices {
		if err := device.Do(device.Open); err != nil {
			return scheduler, fake, err
		}
	}
	if err := scheduler.Connect(func(*Link) (bool, error) { return staged, nil }); err != nil {
		return scheduler, fake, err
	}
	for _, link := range scheduler.Links {
		if link.Staged {
			if err := link.Stage(); err != nil {
				return scheduler, fake, err
			}
		}
	}
	err := scheduler.Mark()
	return scheduler, fake, err
}

// closed gives everything back, and says what is still held.
func closed(tb testing.TB, scheduler *Scheduler, fake *fake) {
	tb.Helper()
	fake.fails = 0
	var all []error
	for _, link := range scheduler.Links {
		all = append(all, link.Free())
	}
	for _, device := range scheduler.Devices {
		all = append(all, device.Do(func() error { return errors.Join(scheduler.Unmark(device), device.Close()) }))
		device.End()
	}
	if err := errors.Join(all...); err != nil || len(fake.live) != 0 {
		tb.Errorf("%v; held: %v", err, fake.live)
	}
}

// makes is what an instruction of a toy does to its arena.
func makes(of *program.Program, index int32, arena []byte) {
	instr, hash := &of.Instrs[index], fnv.New64a()
	_ = binary.Write(hash, binary.LittleEndian, []int32{int32(instr.Op), instr.MicroBatch, instr.Device, index})
	accesses := of.Accesses[instr.FirstAccess:instr.EndAccess]
	for _, access := range accesses {
		if buffer := &of.Buffers[access.Buffer]; access.Mode != program.Write {
			hash.Write(arena[buffer.Offset : buffer.Offset+buffer.Bytes])
		}
	}
	for _, access := range accesses {
		buffer := &of.Buffers[access.Buffer]
		for at := int64(0); access.Mode != program.Read && at < buffer.Bytes; at += 8 {
			binary.LittleEndian.PutUint64(arena[buffer.Offset+at:], hash.Sum64()+uint64(at))
		}
	}
}
