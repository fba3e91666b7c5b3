package schedule

import "errors"

// relay carries the messages of a stream to another device by way of the host, in parts. The stream
// copies a part down into pinned memory. A queue of the receiver copies it up from there, in the
// same order. While a part goes up the next comes down. The queue waits for nothing else, so no
// cycle of waits can include it: proofs about a program with direct messages remain true.
type relay struct {
	from, to *Device
	apart    bool  // they are on two GPUs
	up       Queue // the receiver's
	pinned   Pinned
	parts    []relayPart
	turn     int
}

// relayPart is bytes of the host: filled when the sender's stream has copied them down, taken when
// the receiver's queue has copied them up.
type relayPart struct {
	data          []byte
	filled, taken Event
}

// The most host memory that a relay takes. Two parts are enough. Four hide that one end begins
// late. A part takes a link 80 µs, a tenth of that for the start of the copy.
const (
	relayParts = 4
	relaySize  = 4 << 20
)

// pin makes the parts of the relay that belong to the sender.
func (relay *relay) pin(size int64) (err error) {
	if relay.pinned, err = relay.from.Driver.Pin(relayParts * size); err != nil {
		return err
	}
	for i := range relay.parts {
		relay.parts[i].data = relay.pinned.Bytes()[int64(i)*size : int64(i+1)*size]
		if relay.parts[i].filled, err = relay.from.Driver.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

// follow makes the parts of the relay that belong to the receiver.
func (relay *relay) follow() (err error) {
	for i := range relay.parts {
		if relay.parts[i].taken, err = relay.to.Driver.NewEvent(false); err != nil {
			return err
		}
	}
	relay.up, err = relay.to.Driver.NewQueue()
	return err
}

// next returns the part to use next.
func (relay *relay) next() *relayPart {
	part := &relay.parts[relay.turn]
	relay.turn = (relay.turn + 1) % len(relay.parts)
	return part
}

// copy, fill and arrive are called on the sender's thread. A part is written again once it is
// taken. The first writes do not wait: an event that was never recorded has ended.
func (relay *relay) copy(down Queue, to, from Address, bytes int64) error {
	for bytes > 0 {
		part := relay.next()
		data := part.data[:min(bytes, int64(len(part.data)))]
		if err := down.Await(part.taken); err != nil {
			return err
		}
		if err := down.Down(data, from); err != nil {
			return err
		}
		if err := relay.behind(down, part, func() error { return relay.up.Up(to, data) }); err != nil {
			return err
		}
		count := int64(len(data))
		to, from, bytes = to+Address(count), from+Address(count), bytes-count
	}
	return nil
}

func (relay *relay) fill(down Queue, at Address, value byte, bytes int64) error {
	return relay.behind(down, relay.next(), func() error { return relay.up.Fill(at, value, bytes) })
}

// behind gives the receiver's queue work for when the sender's queue has come here. Its calls use
// the context of the receiver's GPU: an event can be recorded only on queues of its own context.
func (relay *relay) behind(down Queue, part *relayPart, give func() error) error {
	if err := down.Record(part.filled); err != nil {
		return err
	}
	if err := relay.use(relay.to); err != nil {
		return err
	}
	err := relay.up.Await(part.filled)
	if err == nil {
		err = give()
	}
	if err == nil {
		err = relay.up.Record(part.taken)
	}
	return errors.Join(relay.to.Driver.Lost(err), relay.use(relay.from))
}

// use binds the thread to a device's GPU, if the other end is on another one.
func (relay *relay) use(device *Device) error {
	if !relay.apart {
		return nil
	}
	return device.Driver.Use()
}

// arrive makes the sender's stream wait for all that was given so far: parts are taken in order.
func (relay *relay) arrive(down Queue) error {
	last := (relay.turn + len(relay.parts) - 1) % len(relay.parts)
	return down.Await(relay.parts[last].taken)
}

// free releases the relay, each end on its own thread.
func (relay *relay) free() error {
	return errors.Join(
		relay.to.Do(func() error {
			var all []error
			if relay.up != nil {
				all = append(all, relay.up.Destroy())
			}
			for i := range relay.parts {
				if event := relay.parts[i].taken; event != nil {
					all = append(all, event.Destroy())
				}
			}
			return errors.Join(all...)
		}),
		relay.from.Do(func() error {
			var all []error
			if relay.pinned != nil {
				all = append(all, relay.pinned.Free())
			}
			for i := range relay.parts {
				if event := relay.parts[i].filled; event != nil {
					all = append(all, event.Destroy())
				}
			}
			return errors.Join(all...)
		}))
}
