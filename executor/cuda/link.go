//go:build cuda && linux && cgo && amd64

package cuda

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/program"
)

// connect finds the links of a program in the order of its sends, and how each goes.
func (machine *machine) connect() error {
	machine.links = make(map[linkKey]*link)
	for i := range machine.program.Instrs {
		instr := &machine.program.Instrs[i]
		if instr.Op != program.Send {
			continue
		}
		channel := &machine.program.Channels[instr.Channel]
		key := linkKey{machine.order.of[i], channel.To}
		known := machine.links[key]
		if known == nil {
			from, to := machine.devices[instr.Device], machine.devices[channel.To]
			known = &link{from: from, to: to, out: from.streams[instr.Stream], channel: channel}
			var err error
			if known.staged, err = machine.staged(known); err != nil {
				return err
			}
			machine.links[key] = known
			machine.linked = append(machine.linked, known)
		}
		known.most = max(known.most, channel.Bytes)
	}
	return nil
}

// staged reports messages that go by way of the host.
func (machine *machine) staged(link *link) (bool, error) {
	asked := machine.backend.options.Transport
	if asked == Host {
		return true, nil
	}
	from, to := link.from.gpu, link.to.gpu
	reaches, err := from.Reaches(to.Device)
	if err == nil && !reaches && asked == Peer {
		err = fmt.Errorf("%s does not reach %s, into which it sends %s: --transport host goes by way of the host", from.place(), to.place(), link.channel.Name)
	}
	return !reaches || link.to.closed && from != to, err
}

// senders are the other GPUs that write into a device's slots.
func (machine *machine) senders(into *device) (peers []*driver.Device) {
	known := map[*gpu]bool{into.gpu: true}
	for _, link := range machine.linked {
		if gpu := link.from.gpu; link.to == into && !link.staged && !known[gpu] {
			known[gpu] = true
			peers = append(peers, gpu.Device)
		}
	}
	return peers
}

// Links are the ways that messages take, in the order of their first ones.
func (machine *machine) Links() []executor.Link { return machine.told }

// stage makes the relays of all links that need one.
func (machine *machine) stage() error {
	for _, link := range machine.linked {
		link.staged = link.staged || link.to.closed && link.from.gpu != link.to.gpu
		if !link.staged {
			continue
		}
		if err := machine.relayed(link); err != nil {
			return err
		}
	}
	return nil
}

// relayed makes a link's relay.
func (machine *machine) relayed(link *link) error {
	relay := &relay{from: link.from, to: link.to, parts: make([]relayPart, relayParts)}
	link.relay = relay // what there is of it is given back, whatever fails
	size := max(1, min(relaySize, link.most))
	if err := link.from.do(func() error { return relay.pin(machine.pin, size) }); err != nil {
		return fmt.Errorf("page-locked memory for %v: %w", link, err)
	}
	return link.to.do(relay.follow)
}

// link is how messages that a stream sends go to a device.
type link struct {
	from, to *device
	out      *driver.Stream
	channel  *program.Channel // the first that goes this way
	most     int64            // bytes of a message
	relay    *relay           // nil: the sender writes into the receiver's arena
	staged   bool             // it is to have a relay
}

// linkKey is a stream, as in order.streams, and the device that it sends to.
type linkKey struct{ stream, to int32 }

// copy carries bytes of a message, in the order of the sending stream.
func (link *link) copy(to, from driver.Address, bytes int64) error {
	if link.relay != nil {
		return link.relay.copy(link.out, to, from, bytes)
	}
	return link.out.Copy(to, from, bytes)
}

// fill sets bytes of a slot behind a message.
func (link *link) fill(at driver.Address, value byte, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if link.relay != nil {
		return link.relay.fill(link.out, at, value, bytes)
	}
	return link.out.Fill(at, value, bytes)
}

// arrive has the sending stream wait until all of a message is there: what is
// recorded on it then is the message's end.
func (link *link) arrive() error {
	if link.relay != nil {
		return link.relay.arrive(link.out)
	}
	return nil
}

// free gives back what the link has of its own.
func (link *link) free() error {
	if link.relay == nil {
		return nil
	}
	return link.relay.free()
}

// transport is how a link goes.
func (link *link) transport() Transport {
	if link.staged {
		return Host
	}
	return Peer
}

func (link *link) String() string {
	return fmt.Sprintf("the path from device %d on %s to device %d on %s, transport %s",
		link.from.plan.ID, link.from.gpu.place(), link.to.plan.ID, link.to.gpu.place(), link.transport())
}
