package schedule

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// Device is a device of a program: its queues, and the thread that makes all calls for them.
type Device struct {
	Driver Driver
	Plan   *program.Device

	queues   []Queue // by stream
	parked   []Event // by stream: for waits of the host, and the end of a step
	fenced   Pinned  // bytes of the last fence
	hosted   Pinned  // the device's buffers of class host
	stepping bool
	tasks    chan func()
	wake     chan struct{}
}

// NewDevice returns a device without queues and starts its thread.
func NewDevice(plan *program.Device, driver Driver) *Device {
	device := &Device{Driver: driver, Plan: plan, tasks: make(chan func()), wake: make(chan struct{}, 1)}
	go func() {
		for task := range device.tasks {
			task()
		}
	}()
	return device
}

func (device *Device) String() string {
	return fmt.Sprintf("device %d on %s", device.Plan.ID, device.Driver.Place())
}

// Do calls a function on the device's thread.
func (device *Device) Do(call func() error) error {
	done := make(chan error, 1)
	device.tasks <- func() { done <- call() }
	return device.Driver.Lost(<-done)
}

// End ends the thread.
func (device *Device) End() { close(device.tasks) }

// Queue returns the queue of a stream.
func (device *Device) Queue(stream int) Queue { return device.queues[stream] }

// Stepping reports whether a step runs. It is for the device's thread.
func (device *Device) Stepping() bool { return device.stepping }

// Open makes a queue for each stream of the program, on the device's thread. A program without
// streams gets one queue, for the reads of loading.
func (device *Device) Open() error {
	for range max(1, len(device.Plan.Streams)) {
		queue, err := device.Driver.NewQueue()
		if err != nil {
			return err
		}
		device.queues = append(device.queues, queue)
		event, err := device.Driver.NewEvent(false)
		if err != nil {
			return err
		}
		device.parked = append(device.parked, event)
	}
	return nil
}

// keep returns pinned memory for the bytes of a fence, on the device's thread. A device has one
// queue with fences.
func (device *Device) keep(bytes int64) ([]byte, error) {
	if device.fenced != nil && int64(len(device.fenced.Bytes())) < bytes {
		if err := device.fenced.Free(); err != nil {
			return nil, err
		}
		device.fenced = nil
	}
	if device.fenced == nil {
		pinned, err := device.Driver.Pin(bytes)
		if err != nil {
			return nil, err
		}
		device.fenced = pinned
	}
	return device.fenced.Bytes()[:bytes], nil
}

// Close releases what Open made, on the device's thread.
func (device *Device) Close() error {
	var all []error
	if device.fenced != nil {
		all = append(all, device.fenced.Free())
	}
	if device.hosted != nil {
		all = append(all, device.hosted.Free())
	}
	for _, queue := range device.queues {
		all = append(all, queue.Destroy())
	}
	for _, event := range device.parked {
		all = append(all, event.Destroy())
	}
	device.queues, device.parked, device.fenced, device.hosted = nil, nil, nil, nil
	return errors.Join(all...)
}

// Finish waits, on the device's thread and outside of steps, until the work of its queues has
// ended. After limit it returns an [*executor.HangError] with what as its state.
func (device *Device) Finish(limit time.Duration, what string) error {
	for i, queue := range device.queues {
		if err := queue.Record(device.parked[i]); err != nil {
			return err
		}
	}
	begin := time.Now()
	for _, event := range device.parked {
		for {
			ended, err := event.Ended()
			if err != nil {
				return err
			}
			if ended {
				break
			}
			if took := time.Since(begin); took > limit {
				return &executor.HangError{After: took.Round(time.Millisecond), State: what}
			}
			runtime.Gosched()
		}
	}
	return nil
}
