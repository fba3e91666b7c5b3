package schedule

import "errors"

// relay carries the messages of a stream to another device by way of the host, in
// parts. The stream copies a part down into pinned memory, and a queue of the
// receiver's copies it up from there, part by part in the same order. That queue
// waits for nothing else, so no cycle of waits can include it: what was proved of a
// program with direct messages remains true. While a part goes up the next comes down.
type relay struct {
	from, to *Device
	apart    bool  // they are on two GPUs
	up       Queue // the receiver's
	pinned   Pinned
	parts    []relayPart
	turn     int
}

// relayPart is bytes of the host's: filled when the sender's stream has copied them
// down, taken when the receiver's has copied them up.
type relayPart struct {
	data          []byte
	filled, taken Event
}

// What a relay takes of the host at most: two parts would do, four hide that one end
// begins late. A part takes a link 80 µs; a tenth of it is the start of the copy.
const (
	relayParts = 4
	relaySize  = 4 << 20
)

// pin makes what is the sender's.
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

// follow makes what is the receiver's.
func (relay *relay) follow() (err error) {
	for i := range relay.parts {
		if relay.parts[i].taken, err = relay.to.Driver.NewEvent(false); err != nil {
			return err
		}
	}
	relay.up, err = relay.to.Driver.NewQueue()
	return err
}

// next is the part whose turn it is.
func (relay *relay) next() *relayPart {
	part := &relay.parts[relay.turn]
	relay.turn = (relay.turn + 1) % len(relay.parts)
	return part
}

// copy is called on the sender's thread, as are fill and arrive. A part is written
// again when it was taken. No one waits for the first ones, as an event that was
// never recorded has ended.
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

// behind gives the receiver's queue something to do when the sender's has come
// here. Its calls are made with its own GPU's context, as an event is recorded on
// queues of its own context alone.
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

// use has the thread make calls for a device's GPU, if the other end is on another.
func (relay *relay) use(device *Device) error {
	if !relay.apart {
		return nil
	}
	return device.Driver.Use()
}

// arrive has the sender's stream wait for all that was given so far: parts are taken
// in their order.
func (relay *relay) arrive(down Queue) error {
	last := (relay.turn + len(relay.parts) - 1) % len(relay.parts)
	return down.Await(relay.parts[last].taken)
}

// free releases what there is of it, each end's on its own thread.
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
