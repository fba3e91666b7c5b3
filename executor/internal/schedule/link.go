package schedule

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// Link is the path of the messages that a stream sends to a device.
type Link struct {
	From, To *Device
	Channel  *program.Channel // the first channel on this path
	// Staged messages go by way of the host.
	Staged bool

	out   Queue
	most  int64  // bytes of a message
	relay *relay // nil: the sender writes into the receiver's arena
}

// linkKey is a stream, as in [Order].Streams, and the target device.
type linkKey struct{ stream, to int32 }

// NewLink returns a link for messages of at most some bytes, sent by one of a device's queues.
func NewLink(from, to *Device, stream int32, channel *program.Channel, most int64) *Link {
	return &Link{From: from, To: to, Channel: channel, out: from.queues[stream], most: most}
}

// Connect makes the links of a program in the order of its sends. It asks for each whether its
// messages are staged.
func (of *Scheduler) Connect(staged func(link *Link) (bool, error)) (err error) {
	of.links = make(map[linkKey]*Link)
	for i := range of.Program.Instrs {
		instr := &of.Program.Instrs[i]
		if instr.Op != program.Send {
			continue
		}
		channel := &of.Program.Channels[instr.Channel]
		key := linkKey{of.Of[i], channel.To}
		link := of.links[key]
		if link == nil {
			link = NewLink(of.Devices[instr.Device], of.Devices[channel.To], instr.Stream, channel, 0)
			if link.Staged, err = staged(link); err != nil {
				return err
			}
			of.links[key] = link
			of.Links = append(of.Links, link)
		}
		link.most = max(link.most, channel.Bytes)
	}
	return nil
}

// Stage makes the relay of a staged link.
func (link *Link) Stage() error {
	relay := &relay{from: link.From, to: link.To, apart: link.From.Driver.Place() != link.To.Driver.Place(), parts: make([]relayPart, relayParts)}
	link.relay = relay // it is released, whatever fails
	size := max(1, min(relaySize, link.most))
	if err := link.From.Do(func() error { return relay.pin(size) }); err != nil {
		return fmt.Errorf("pinned memory for %v: %w", link, err)
	}
	return link.To.Do(relay.follow)
}

// Copy copies bytes of a message, in the order of the sending stream. Call it, Fill and Arrive on
// the sender's thread.
func (link *Link) Copy(to, from Address, bytes int64) error {
	if link.relay != nil {
		return link.relay.copy(link.out, to, from, bytes)
	}
	return link.out.Copy(to, from, bytes)
}

// Fill sets bytes of a slot after a message.
func (link *Link) Fill(at Address, value byte, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if link.relay != nil {
		return link.relay.fill(link.out, at, value, bytes)
	}
	return link.out.Fill(at, value, bytes)
}

// Arrive makes the sending stream wait until the whole message is there. An event recorded after it
// is the message's end.
func (link *Link) Arrive() error {
	if link.relay != nil {
		return link.relay.arrive(link.out)
	}
	return nil
}

// Staging returns how many parts the link's relay has, and how many bytes of host memory they take;
// 0 without a relay.
func (link *Link) Staging() (parts int, bytes int64) {
	if link.relay == nil {
		return 0, 0
	}
	return len(link.relay.parts), int64(len(link.relay.pinned.Bytes()))
}

// Free releases what belongs to the link.
func (link *Link) Free() error {
	if link.relay == nil {
		return nil
	}
	return link.relay.free()
}

// Transport returns how the link's messages go.
func (link *Link) Transport() executor.Transport {
	if link.Staged {
		return executor.HostTransport
	}
	return executor.PeerTransport
}

func (link *Link) String() string {
	return fmt.Sprintf("the path from %v to %v, transport %s", link.From, link.To, link.Transport())
}
