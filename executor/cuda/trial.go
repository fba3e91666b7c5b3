//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// checked is how many bytes the check sends over every path: enough that they take the way of
// messages, in a millisecond.
const checked = 1 << 20

// trials checks every path at the start, and lists the links.
type trials struct {
	*arenas
	links []executor.Link
}

// Links implements [executor.Linked].
func (trials *trials) Links() []executor.Link { return trials.links }

// tryPaths sends random bytes over every path, from the host to a device and back, and between devices
// the way that messages go. It compares them with what arrives. Some drivers say that GPUs reach
// each other when they do not. The cause is an IOMMU, access control of PCIe switches, or a virtual
// machine that passes GPUs through. The copy then ends without an error, and other bytes arrive
// (JuliaGPU/CUDA.jl issue 3112). NVIDIA's Data Center GPU manuals ask for such a test.
func (trials *trials) tryPaths(links []*schedule.Link) error {
	number := int64(0)
	for i, device := range trials.devices {
		number++
		if device.arena == nil {
			continue
		}
		name := fmt.Sprintf("the path from the host to %v and back", device.lanes)
		size := min(checked, device.plan.Arena)
		block, err := fresh(size)
		if err == nil {
			err = trials.Write(i, 0, block)
		}
		if err == nil {
			err = trials.arrived(i, 0, block, number, name)
		}
		if err != nil {
			return err
		}
		trials.links = append(trials.links,
			executor.Link{From: executor.TheHost, To: device.plan.ID, Transport: string(executor.HostTransport), Checked: size},
			executor.Link{From: device.plan.ID, To: executor.TheHost, Transport: string(executor.HostTransport), Checked: size})
	}
	for _, link := range links {
		number++
		if err := trials.try(link, number); err != nil {
			return err
		}
	}
	return nil
}

// try sends as many blocks of random bytes over a link as its relay has parts, from the sender's
// first bytes to the receiver's first.
func (trials *trials) try(link *schedule.Link, number int64) error {
	sender, receiver := of(link.From), of(link.To)
	if sender.arena == nil || receiver.arena == nil {
		return nil
	}
	from, to := trials.index(sender), trials.index(receiver)
	size := min(checked, sender.plan.Arena, receiver.plan.Arena)
	tested := executor.Link{From: sender.plan.ID, To: receiver.plan.ID, Transport: string(link.Transport()), Checked: size}
	rounds, staging := link.Staging()
	tested.Staging = staging
	for range max(1, rounds) {
		block, err := fresh(size)
		if err == nil {
			err = trials.Write(from, 0, block)
		}
		if err == nil {
			err = trials.settled()
		}
		if err == nil {
			err = sender.do(func() error {
				return errors.Join(link.Copy(receiver.at(0), sender.at(0), size), link.Arrive(), trials.finish(sender, link.String()))
			})
		}
		if err == nil {
			err = trials.arrived(to, 0, block, number, link.String())
			var wrong *executor.PathError
			if errors.As(err, &wrong) {
				wrong.Peer = !link.Staged
			}
		}
		if err == nil {
			err = trials.Fill(from, 0, size, executor.Poison)
		}
		if err != nil {
			return err
		}
	}
	trials.links = append(trials.links, tested)
	return nil
}

// arrived compares bytes of a device with those that were sent, and poisons them. If the options
// ask for a fault of this path, it changes a byte first.
func (trials *trials) arrived(device int, offset int64, want []byte, number int64, name string) error {
	if trials.options.Fault == (executor.Fault{Kind: executor.CorruptPath, At: number}) {
		at := len(want) / 2
		if err := trials.Write(device, offset+int64(at), []byte{want[at] ^ 1}); err != nil {
			return err
		}
		name += " (" + string(executor.CorruptPath) + " was asked for)"
	}
	got := make([]byte, len(want))
	if err := trials.Read(device, offset, got); err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		return trials.Fill(device, offset, int64(len(want)), executor.Poison)
	}
	at := 0
	for got[at] == want[at] {
		at++
	}
	return &executor.PathError{Path: name, Byte: int64(at), Bytes: int64(len(want)), Want: want[at], Got: got[at]}
}

func fresh(size int64) ([]byte, error) {
	block := make([]byte, size)
	_, err := rand.Read(block)
	return block, err
}
