//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor"
)

// checked is how many bytes go over every path before anything that counts does:
// enough that a copy takes the way that messages take, done in a millisecond.
const checked = 1 << 20

// trials sends fresh random bytes over every path, from the host to a device and
// back, and from device to device the way that messages go, and looks whether they
// are what arrives. A driver that says that GPUs reach each other where they do not
// (an IOMMU that is on, access control of PCIe switches, a virtual machine that
// passes GPUs through) does not say so when it copies: the copy ends well, and
// other bytes are there. (JuliaGPU/CUDA.jl issue 3112; NVIDIA's Data Center GPU
// manuals ask for such a test.)
func (machine *machine) trials() error {
	number := int64(0)
	for i, device := range machine.devices {
		number++
		if device.arena == nil {
			continue
		}
		name := fmt.Sprintf("the path from the host to device %d on %s and back", device.plan.ID, device.gpu.place())
		size := min(checked, device.plan.Arena)
		block, err := fresh(size)
		if err == nil {
			err = machine.Write(i, 0, block)
		}
		if err == nil {
			err = machine.arrived(i, 0, block, number, name)
		}
		if err != nil {
			return err
		}
		machine.told = append(machine.told,
			executor.Link{From: executor.TheHost, To: device.plan.ID, Transport: string(Host), Checked: size},
			executor.Link{From: device.plan.ID, To: executor.TheHost, Transport: string(Host), Checked: size})
	}
	for _, link := range machine.linked {
		number++
		if err := machine.try(link, number); err != nil {
			return err
		}
	}
	return nil
}

// try sends as many blocks over a link as its relay has parts, each of fresh bytes,
// from the sender's first bytes to the receiver's first.
func (machine *machine) try(link *link, number int64) error {
	if link.from.arena == nil || link.to.arena == nil {
		return nil
	}
	from, to := machine.index(link.from), machine.index(link.to)
	size, rounds := min(checked, link.from.plan.Arena, link.to.plan.Arena), 1
	told := executor.Link{From: link.from.plan.ID, To: link.to.plan.ID, Transport: string(link.transport()), Checked: size}
	if link.relay != nil {
		rounds, told.Staging = len(link.relay.parts), int64(len(link.relay.pinned.Data))
	}
	for range rounds {
		block, err := fresh(size)
		if err == nil {
			err = machine.Write(from, 0, block)
		}
		if err == nil {
			err = machine.settled()
		}
		if err == nil {
			err = link.from.do(func() error { return errors.Join(link.carry(size), machine.finish(link.from, link.String())) })
		}
		if err == nil {
			err = machine.arrived(to, 0, block, number, link.String())
			var wrong *PathError
			if errors.As(err, &wrong) {
				wrong.Peer = !link.staged
			}
		}
		if err == nil {
			err = machine.Fill(from, 0, size, executor.Poison)
		}
		if err != nil {
			return err
		}
	}
	machine.told = append(machine.told, told)
	return nil
}

// carry sends the first bytes of one arena to those of the other.
func (link *link) carry(size int64) error {
	if err := link.copy(link.to.arena.Address, link.from.arena.Address, size); err != nil {
		return err
	}
	return link.arrive()
}

// arrived looks at a device for what was sent, and puts poison there. Of the path
// that is asked for by number one byte is made another one before.
func (machine *machine) arrived(device int, offset int64, want []byte, number int64, name string) error {
	if machine.backend.options.Fault == (Fault{CorruptPath, number}) {
		at := len(want) / 2
		if err := machine.Write(device, offset+int64(at), []byte{want[at] ^ 1}); err != nil {
			return err
		}
		name += " (" + string(CorruptPath) + " was asked for)"
	}
	got := make([]byte, len(want))
	if err := machine.Read(device, offset, got); err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		return machine.Fill(device, offset, int64(len(want)), executor.Poison)
	}
	at := 0
	for got[at] == want[at] {
		at++
	}
	return &PathError{Path: name, Byte: int64(at), Bytes: int64(len(want)), Want: want[at], Got: got[at]}
}

func fresh(size int64) ([]byte, error) {
	block := make([]byte, size)
	_, err := rand.Read(block)
	return block, err
}
