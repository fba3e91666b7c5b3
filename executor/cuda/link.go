//go:build cuda && linux && cgo && amd64

package cuda

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/program"
)

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
