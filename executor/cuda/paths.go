//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/program"
)

// Sizes of copies that are timed: so large that what begins and ends them is no
// thousandth of it, and so few that they take milliseconds.
const (
	pathBytes    = 256 << 20
	pathPatience = 30 * time.Second
	pathTurns    = 4 // of smaller ones as many as have the same bytes, 64 at most
	trips        = 16
	ahead        = 64
)

// Paths measures copies inside each of these GPUs, between each and the host's
// page-locked memory, and messages from each to each, whose bytes are compared.
func Paths(ordinals []int) ([]PathRates, error) { return paths(ordinals, pathBytes) }

func paths(ordinals []int, bytes int64) (found []PathRates, err error) {
	machine := &machine{
		backend: &backend{options: Options{Devices: ordinals, Patience: pathPatience}, shape: transfer.ShapeFor},
		program: &program.Program{},
	}
	for i := range ordinals {
		machine.program.Devices = append(machine.program.Devices, program.Device{ID: int32(i), Arena: 2 * bytes, Streams: []string{"copies"}})
	}
	defer func() { err = errors.Join(err, machine.Close()) }()
	for _, part := range []func() error{machine.find, machine.start, machine.room} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	for _, device := range machine.devices {
		if err := device.open(device.peers(machine.gpus), Auto); err != nil {
			return nil, err
		}
	}
	for _, device := range machine.devices {
		rates := PathRates{Granule: device.gpu.granule, To: make([]PathRate, len(machine.devices))}
		if err := device.do(func() error { return device.alone(&rates) }); err != nil {
			return nil, fmt.Errorf("%s: %w", device.gpu.place(), err)
		}
		for i, other := range machine.devices {
			if other == device {
				continue
			}
			if rates.To[i], err = machine.to(device, other); err != nil {
				return nil, fmt.Errorf("from %s to %s: %w", device.gpu.place(), other.gpu.place(), err)
			}
		}
		found = append(found, rates)
	}
	return found, nil
}

// peers are the GPUs that reach the device's.
func (device *device) peers(gpus []*gpu) (reaching []*driver.Device) {
	for _, other := range gpus {
		if reaches, err := other.Reaches(device.gpu.Device); other != device.gpu && reaches && err == nil {
			reaching = append(reaching, other.Device)
		}
	}
	return reaching
}

// alone times copies inside the GPU and between it and the host.
func (device *device) alone(rates *PathRates) (err error) {
	bytes := device.plan.Arena / 2
	pinned, err := driver.Pin(bytes / 4)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pinned.Free()) }()
	up := func() error { return device.streams[0].Up(device.at(0), pinned.Data) }
	down := func() error { return device.streams[0].Down(pinned.Data, device.at(0)) }
	for _, one := range []struct {
		give  func() error
		bytes int64
		into  *float64
	}{{device.inside, bytes, &rates.Inside}, {up, bytes / 4, &rates.Up}, {down, bytes / 4, &rates.Down}} {
		seconds, err := device.seconds(one.bytes, one.give)
		if err != nil {
			return err
		}
		*one.into = float64(one.bytes) / seconds
	}
	return nil
}

// seconds is what a copy of so many bytes takes when it was made once already, the
// mean of a few.
func (device *device) seconds(bytes int64, give func() error) (seconds float64, err error) {
	begin, err := driver.NewEvent(true)
	if err != nil {
		return 0, err
	}
	end, err := driver.NewEvent(true)
	if err != nil {
		return 0, errors.Join(err, begin.Destroy())
	}
	defer func() { err = errors.Join(err, begin.Destroy(), end.Destroy()) }()
	stream := device.streams[0]
	all := []error{give(), stream.Record(begin)}
	turns := min(max(pathTurns, pathTurns*pathBytes/bytes), 64)
	for range turns {
		all = append(all, give())
	}
	if err := errors.Join(append(all, stream.Record(end), stream.Synchronize())...); err != nil {
		return 0, err
	}
	took, err := end.Since(begin)
	return took.Seconds() / float64(turns), err
}

// to times messages from one device to another: what a large one carries, and how much
// later than it was sent a small one is there. They go the way that those of a program
// would, once bytes have arrived that way as they were sent.
func (machine *machine) to(from, to *device) (rate PathRate, err error) {
	bytes := from.plan.Arena / 2
	link := &link{from: from, to: to, out: from.streams[0], channel: &program.Channel{Name: "copies"}, most: bytes}
	defer func() { err = errors.Join(err, link.free()) }()
	link.staged, err = machine.staged(link)
	if err == nil {
		rate.Wrong, err = machine.tried(link)
	}
	if err != nil {
		return rate, err
	}
	rate.Staged = link.staged
	err = from.do(func() error {
		seconds, err := from.seconds(bytes, func() error { return errors.Join(link.copy(to.at(0), from.at(0), bytes), link.arrive()) })
		rate.BytesPerSecond = float64(bytes) / seconds
		return err
	})
	switch {
	case err != nil:
	case link.staged:
		err = from.do(func() error { rate.Latency, err = link.latency(); return err })
	default:
		rate.Latency, err = from.latency(to)
	}
	return rate, err
}

// tried sends bytes over a link, and where others arrive by way of the host: wrong says
// what was wrong then.
func (machine *machine) tried(link *link) (wrong string, err error) {
	if link.staged {
		if err := machine.relayed(link); err != nil {
			return "", err
		}
	}
	err = machine.try(link, 0)
	var other *PathError
	if link.staged || !errors.As(err, &other) {
		return "", err
	}
	link.staged = true
	_, err = machine.tried(link)
	return other.Error(), err
}

// latency is what a word takes by way of the host, behind copies that go ahead as in
// [device.latency].
func (link *link) latency() (seconds float64, err error) {
	for range ahead {
		if err := link.from.inside(); err != nil {
			return 0, err
		}
	}
	seconds, err = link.from.seconds(link.most, func() error {
		var all []error
		for range trips {
			all = append(all, link.copy(link.to.at(0), link.from.at(0), 4), link.arrive())
		}
		return errors.Join(all...)
	})
	return seconds / trips, err
}

// inside copies half of the arena to the other.
func (device *device) inside() error {
	half := device.plan.Arena / 2
	return device.streams[0].Copy(device.at(half), device.at(0), half)
}

// latency is half of what a word takes to the other device and back: each waits for
// the other's event. Long copies go ahead, so that everything is given before they
// end, and the host has no part in it. Back goes the event alone where the other does
// not reach the device.
func (device *device) latency(other *device) (seconds float64, err error) {
	back, err := other.gpu.Reaches(device.gpu.Device)
	if err != nil {
		return 0, err
	}
	marks := make([]*driver.Event, 2*trips+2)
	defer func() {
		for i := range marks {
			if marks[i] != nil {
				err = errors.Join(err, device.turn(other, i).do(marks[i].Destroy))
			}
		}
	}()
	for i := range marks {
		if err := device.turn(other, i).do(func() (err error) { marks[i], err = driver.NewEvent(true); return err }); err != nil {
			return 0, err
		}
	}
	for i := range marks {
		from, to := device.turn(other, i), device.turn(other, i+1)
		err := from.do(func() error {
			stream := from.streams[0]
			if i == 0 {
				var all []error
				for range ahead {
					all = append(all, device.inside())
				}
				return errors.Join(append(all, stream.Record(marks[i]))...)
			}
			if err := stream.Await(marks[i-1]); err != nil {
				return err
			}
			if i%2 == 0 || back {
				if err := stream.Copy(to.at(0), from.at(0), 4); err != nil {
					return err
				}
			}
			return stream.Record(marks[i])
		})
		if err != nil {
			return 0, err
		}
	}
	err = device.turn(other, len(marks)-1).do(func() error { return device.turn(other, len(marks)-1).streams[0].Synchronize() })
	if err != nil {
		return 0, err
	}
	err = device.do(func() error { // events of one device can be told apart in time
		took, err := marks[2*trips].Since(marks[0])
		seconds = took.Seconds() / (2 * trips)
		return err
	})
	return seconds, err
}

// turn is the device that an event of a conversation belongs to.
func (device *device) turn(other *device, i int) *device {
	if i%2 == 0 {
		return device
	}
	return other
}
