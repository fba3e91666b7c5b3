//go:build cuda && linux && cgo && amd64

package cuda

import (
	"runtime"
	"sync"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// fill waits where a step's own streams do not wait for the host's: they begin when
// that has ended.
func (device *device) fill(offset, size int64, value byte) error {
	if err := device.host.Fill(device.at(offset), value, size); err != nil || !device.stepping {
		return err
	}
	return device.host.Synchronize()
}

// write returns when the arena has the data.
func (device *device) write(offset int64, data []byte) error {
	for len(data) > 0 {
		part, err := device.part()
		if err != nil {
			return device.landAll(err)
		}
		room := part.data[:min(device.ring.size, len(data))]
		take(room, data)
		if err := device.fly(part, device.host.Up(device.at(offset), room), nil); err != nil {
			return device.landAll(err)
		}
		offset, data = offset+int64(len(room)), data[len(room):]
	}
	return device.landAll(nil)
}

// read copies part after part; while one is taken the GPU copies the next.
func (device *device) read(offset int64, data []byte) error {
	for len(data) > 0 {
		part, err := device.part()
		if err != nil {
			return device.landAll(err)
		}
		room, into := part.data[:min(device.ring.size, len(data))], data
		if err := device.fly(part, device.host.Down(room, device.at(offset)), func() { take(into, room) }); err != nil {
			return device.landAll(err)
		}
		offset, data = offset+int64(len(room)), data[len(room):]
	}
	return device.landAll(nil)
}

// until waits for an event that is about to end.
func until(event *driver.Event) error {
	for {
		ended, err := event.Ended()
		if ended || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// take copies as much of from as into has room for. One processor copies at a tenth
// of what a GPU's link takes: several do, each its stretch.
func take(into, from []byte) {
	const least = 256 << 10
	size := min(len(into), len(from))
	hands := max(1, min(runtime.GOMAXPROCS(0), 16, size/least))
	if hands == 1 {
		copy(into, from)
		return
	}
	var all sync.WaitGroup
	for i := range hands {
		begin, end := size*i/hands, size*(i+1)/hands
		all.Go(func() { copy(into[begin:end], from[begin:]) })
	}
	all.Wait()
}
