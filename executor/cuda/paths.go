//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/executor/program"
)

// Sizes of timed copies. They are so large that start and end take less than a thousandth of the
// time, and so few that they take milliseconds.
const (
	pathBytes   = 256 << 20
	pathTimeout = 30 * time.Second
	pathTurns   = 4 // more of smaller ones: up to the same bytes, 64 at most
	trips       = 16
	ahead       = 64
)

// Paths measures copies inside each of these GPUs and between each and pinned host memory.
// It also measures messages between every two GPUs, and compares their bytes.
func Paths(ordinals []int) ([]executor.PathRates, error) { return paths(ordinals, pathBytes) }

func paths(ordinals []int, bytes int64) (found []executor.PathRates, err error) {
	of := &program.Program{}
	for i := range ordinals {
		of.Devices = append(of.Devices, program.Device{ID: int32(i), Arena: 2 * bytes, Streams: []string{"copies"}})
	}
	made := (&backend{options: executor.GPUOptions{Devices: ordinals, StallLimit: pathTimeout}}).assembled(&bind.Bound{Program: of})
	defer func() { err = errors.Join(err, made.Close()) }()
	for _, part := range []func() error{made.find, func() error { return made.start(transfer.ShapeFor) }, made.checkMemory} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	for _, device := range made.devices {
		if err := device.open(peers(device, made.gpus), executor.AutoTransport); err != nil {
			return nil, err
		}
	}
	for _, device := range made.devices {
		rates := executor.PathRates{Granule: device.gpu.granule, To: make([]executor.PathRate, len(made.devices))}
		if err := device.do(func() error { return (&meteredDevice{device}).alone(&rates) }); err != nil {
			return nil, fmt.Errorf("%s: %w", device.gpu.place(), err)
		}
		for i, other := range made.devices {
			if other == device {
				continue
			}
			if rates.To[i], err = (&meteredLink{from: meteredDevice{device}, to: meteredDevice{other}, trials: made.trials}).rate(); err != nil {
				return nil, fmt.Errorf("from %s to %s: %w", device.gpu.place(), other.gpu.place(), err)
			}
		}
		found = append(found, rates)
	}
	return found, nil
}

// peers returns the GPUs that reach the device's.
func peers(device *device, gpus []*gpu) (reaching []*driver.Device) {
	for _, other := range gpus {
		if reaches, err := other.Reaches(device.gpu.Device); other != device.gpu && reaches && err == nil {
			reaching = append(reaching, other.Device)
		}
	}
	return reaching
}

// meteredDevice is a device whose copies are timed.
type meteredDevice struct{ *device }

// alone times copies inside the GPU and between it and the host.
func (device meteredDevice) alone(rates *executor.PathRates) (err error) {
	bytes := device.plan.Arena / 2
	pinned, err := driver.Pin(bytes / 4)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pinned.Free()) }()
	up := func() error { return device.stream(0).Up(device.at(0), pinned.Data) }
	down := func() error { return device.stream(0).Down(pinned.Data, device.at(0)) }
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

// seconds returns the time of a copy of so many bytes: the mean of several, after one that is not
// counted.
func (device meteredDevice) seconds(bytes int64, give func() error) (seconds float64, err error) {
	begin, err := driver.NewEvent(true)
	if err != nil {
		return 0, err
	}
	end, err := driver.NewEvent(true)
	if err != nil {
		return 0, errors.Join(err, begin.Destroy())
	}
	defer func() { err = errors.Join(err, begin.Destroy(), end.Destroy()) }()
	stream := device.stream(0)
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

// meteredLink is a path from one device to another whose messages are timed. They use the transport
// of a program's messages, after a check that bytes arrive unchanged.
type meteredLink struct {
	*schedule.Link
	from, to meteredDevice
	trials   *trials
	bytes    int64 // of a message
}

// rate measures the bandwidth of a large message and the latency of a small one.
func (link *meteredLink) rate() (rate executor.PathRate, err error) {
	from, to := link.from, link.to
	link.bytes = from.plan.Arena / 2
	link.Link = schedule.NewLink(from.lanes, to.lanes, 0, &program.Channel{Name: "copies"}, link.bytes)
	defer func() { err = errors.Join(err, link.Free()) }()
	link.Staged, err = staged(executor.AutoTransport, link.Link)
	if err == nil {
		rate.Wrong, err = link.tried()
	}
	if err != nil {
		return rate, err
	}
	rate.Staged = link.Staged
	err = from.do(func() error {
		seconds, err := from.seconds(link.bytes, func() error { return errors.Join(link.Copy(to.at(0), from.at(0), link.bytes), link.Arrive()) })
		rate.BytesPerSecond = float64(link.bytes) / seconds
		return err
	})
	switch {
	case err != nil:
	case link.Staged:
		err = from.do(func() error { rate.Latency, err = link.stagedLatency(); return err })
	default:
		rate.Latency, err = link.latency()
	}
	return rate, err
}

// tried sends bytes over the link. If they arrive changed, wrong says how, and the link goes by way
// of the host.
func (link *meteredLink) tried() (wrong string, err error) {
	if link.Staged {
		if err := link.Stage(); err != nil {
			return "", err
		}
	}
	err = link.trials.try(link.Link, 0)
	var other *executor.PathError
	if link.Staged || !errors.As(err, &other) {
		return "", err
	}
	link.Staged = true
	_, err = link.tried()
	return other.Error(), err
}

// stagedLatency returns the seconds that a word takes by way of the host. Long copies go ahead, as
// in latency.
func (link *meteredLink) stagedLatency() (seconds float64, err error) {
	for range ahead {
		if err := link.from.inside(); err != nil {
			return 0, err
		}
	}
	seconds, err = link.from.seconds(link.bytes, func() error {
		var all []error
		for range trips {
			all = append(all, link.Copy(link.to.at(0), link.from.at(0), 4), link.Arrive())
		}
		return errors.Join(all...)
	})
	return seconds / trips, err
}

// inside copies half of the arena to the other.
func (device meteredDevice) inside() error {
	half := device.plan.Arena / 2
	return device.stream(0).Copy(device.at(half), device.at(0), half)
}

// latency returns half of what a word takes to the other device and back, in seconds: each waits
// for the other's event. Long copies go ahead, so that everything is queued before they end and the
// host has no part in it. If the other device does not reach this one, only the event goes back.
func (link *meteredLink) latency() (seconds float64, err error) {
	back, err := link.to.gpu.Reaches(link.from.gpu.Device)
	if err != nil {
		return 0, err
	}
	marks := make([]*driver.Event, 2*trips+2)
	defer func() {
		for i := range marks {
			if marks[i] != nil {
				err = errors.Join(err, link.turn(i).do(marks[i].Destroy))
			}
		}
	}()
	for i := range marks {
		if err := link.turn(i).do(func() (err error) { marks[i], err = driver.NewEvent(true); return err }); err != nil {
			return 0, err
		}
	}
	for i := range marks {
		from, to := link.turn(i), link.turn(i+1)
		err := from.do(func() error {
			stream := from.stream(0)
			if i == 0 {
				var all []error
				for range ahead {
					all = append(all, link.from.inside())
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
	err = link.turn(len(marks) - 1).do(func() error { return link.turn(len(marks) - 1).stream(0).Synchronize() })
	if err != nil {
		return 0, err
	}
	err = link.from.do(func() error { // the driver measures the time between events of one device only
		took, err := marks[2*trips].Since(marks[0])
		seconds = took.Seconds() / (2 * trips)
		return err
	})
	return seconds, err
}

// turn returns the device that records event i.
func (link *meteredLink) turn(i int) meteredDevice {
	if i%2 == 0 {
		return link.from
	}
	return link.to
}
