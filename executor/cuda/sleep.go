//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/pattern"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// savedCopy is a copy in host memory of the parts of a device's arena that outlast a step,
// one after another.
type savedCopy struct {
	lasting []bind.Lasting
	pinned  *driver.Pinned
	made    bool // it has what no step writes
}

// bytes returns how much a wake copies.
func (saved *savedCopy) bytes() (sum int64) {
	for i := range saved.lasting {
		if saved.lasting[i].Residency != bind.Empty {
			sum += saved.lasting[i].Bytes
		}
	}
	return sum
}

// each calls a function for every stretch that is copied, with its place in the copy.
func (saved *savedCopy) each(call func(stretch *bind.Lasting, data []byte) error) error {
	at := int64(0)
	for i := range saved.lasting {
		stretch := &saved.lasting[i]
		if stretch.Residency == bind.Empty {
			continue
		}
		if err := call(stretch, saved.pinned.Data[at:at+stretch.Bytes]); err != nil {
			return err
		}
		at += stretch.Bytes
	}
	return nil
}

// sleeper releases the memory of arenas, and maps it again.
type sleeper struct {
	*arenas
	meters *meters
	bound  *bind.Bound
}

// Sleep implements [executor.Sleeper]. It allocates the copies' pages before it releases
// anything.
func (sleeper *sleeper) Sleep(ctx context.Context, onProgress func(bytes, of int64)) (bytes int64, err error) {
	if sleeper.left || sleeper.asleep || len(sleeper.devices) == 0 {
		return 0, errors.New("the machine sleeps already, or is closed")
	}
	if err := sleeper.pinCopies(); err != nil {
		return 0, err
	}
	var lock sync.Mutex
	err = sleeper.everywhere(func(device *device) error {
		copied, err := down(device)
		lock.Lock()
		defer lock.Unlock()
		bytes += copied
		return err
	})
	onProgress(0, bytes)
	// If one device fails, the others' copies still end before their pages are freed.
	if err := errors.Join(err, sleeper.everywhere(func(*device) error { return driver.Synchronize() }), ctx.Err()); err != nil {
		return 0, err
	}
	onProgress(bytes, bytes)
	for _, device := range sleeper.devices {
		device.saved.made = true
	}
	sleeper.asleep = true
	err = sleeper.everywhere(func(device *device) error {
		return errors.Join(erase(device, sleeper.options.Poisoned), device.arena.Unmap())
	})
	sleeper.meters.reads(givenBack)
	return bytes, err
}

// pinCopies allocates the pinned memory of the copies, once.
func (sleeper *sleeper) pinCopies() error {
	all := sleeper.bound.Lasting()
	for i, device := range sleeper.devices {
		device.saved.lasting = all[i]
		need := device.saved.bytes()
		if device.saved.pinned != nil || need == 0 || device.arena == nil {
			continue
		}
		err := sleeper.allots.allot("cuMemHostRegister")
		if err == nil {
			err = device.do(func() (err error) {
				device.saved.pinned, err = driver.PinCopy(need)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("pinned host memory for the kept copy of device %d, %v: %w; without --keep host every turn loads again", device.plan.ID, costmodel.Bytes(need), err)
		}
	}
	return nil
}

// down begins to copy what has changed since the last copy.
func down(device *device) (bytes int64, err error) {
	err = device.saved.each(func(stretch *bind.Lasting, data []byte) error {
		if stretch.Residency == bind.Fixed && device.saved.made {
			return nil
		}
		bytes += stretch.Bytes
		return device.host.Down(data, device.at(stretch.Offset))
	})
	return bytes, err
}

// Wake implements [executor.Sleeper].
func (sleeper *sleeper) Wake(ctx context.Context, onProgress func(bytes, of int64)) (mapped time.Duration, bytes int64, err error) {
	if !sleeper.asleep || sleeper.left {
		return 0, 0, errors.New("the machine does not sleep")
	}
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	err = sleeper.remap()
	mapped = time.Since(begin)
	if err == nil {
		bytes, err = sleeper.up(onProgress)
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		return 0, 0, errors.Join(err, sleeper.everywhere(func(device *device) error {
			return errors.Join(leave(device, sleeper.options.Poisoned), device.arena.Unmap())
		}))
	}
	sleeper.asleep = false
	sleeper.meters.wakened()
	return mapped, bytes, nil
}

// remap maps the arenas of all devices, or says why one is not.
func (sleeper *sleeper) remap() error {
	denied := make(map[*device]error)
	for _, device := range sleeper.devices {
		if device.arena != nil && len(denied) == 0 {
			if err := sleeper.allots.allot("cuMemCreate"); err != nil {
				denied[device] = err
			}
		}
	}
	err := sleeper.everywhere(func(device *device) error {
		if err := denied[device]; err != nil {
			return err
		}
		return device.arena.Remap()
	})
	if errors.Is(err, executor.ErrMemory) {
		if shortage := sleeper.checkMemory(); shortage != nil { // it names the missing bytes
			return shortage
		}
	}
	return err
}

// up restores the copies on all GPUs at once. Another stream meanwhile poisons the bytes
// between them, so that the copies do not wait for it.
func (sleeper *sleeper) up(onProgress func(bytes, of int64)) (bytes int64, err error) {
	for _, device := range sleeper.devices {
		bytes += device.saved.bytes()
	}
	err = sleeper.everywhere(func(device *device) error {
		err := device.saved.each(func(stretch *bind.Lasting, data []byte) error {
			return device.host.Up(device.at(stretch.Offset), data)
		})
		return errors.Join(err, blank(device))
	})
	onProgress(0, bytes)
	if err := errors.Join(err, sleeper.everywhere(func(*device) error { return driver.Synchronize() })); err == nil {
		onProgress(bytes, bytes)
	}
	return bytes, err
}

// blank sets every byte that is not copied to its value before a first step.
func blank(device *device) error {
	at, stream := int64(0), device.stream(0)
	for i := range device.saved.lasting {
		stretch := &device.saved.lasting[i]
		err := stream.Fill(device.at(at), executor.Poison, max(0, stretch.Offset-at))
		if err == nil && stretch.Residency == bind.Empty {
			err = stream.Fill(device.at(stretch.Offset), 0, stretch.Bytes)
		}
		if err != nil {
			return err
		}
		at = stretch.Offset + stretch.Bytes
	}
	return stream.Fill(device.at(at), executor.Poison, device.arena.Bytes-at)
}

// leave waits for a device's work and erases its arena, before the device is closed or asleep again.
func leave(device *device, tell func(device int32, bytes int64, wrong bool)) error {
	err := driver.Synchronize()
	if err == nil && device.arena != nil && device.arena.Mapped() {
		err = erase(device, tell)
	}
	return err
}

// erase poisons every byte of an arena before its release. The next owner cannot read the data, and
// a late use of the addresses is visible. With a callback it reads the poison back.
func erase(device *device, tell func(device int32, bytes int64, wrong bool)) (err error) {
	if err := device.whitewash(executor.Poison); err != nil || tell == nil {
		return err
	}
	sums, err := driver.Pin(pattern.SumsBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sums.Free()) }()
	right, err := pattern.Poison(device.arena.Bytes).Matches(device.kernels, device.host, device.arena.Address, sums)
	if err == nil {
		tell(device.plan.ID, device.arena.Bytes, !right)
	}
	return err
}
