package executor

import (
	"context"
	"runtime"
)

// span is a range of an arena that is all poison, or has none.
type span struct {
	from, to int64
	poisoned bool
}

// A GPU delivers some 50 GB/s in pieces of looked bytes. A processor scans a few GB/s,
// so up to lookers processors share the work: no more, as their buffers count as growth.
const (
	looked  = 4 << 20
	lookers = 8
)

// buffers returns a buffer for each processor that scans, and one for the reader. A nil buffer gets
// its memory when it is used.
func buffers() chan []byte {
	all := make(chan []byte, 1+min(runtime.GOMAXPROCS(0), lookers))
	for range cap(all) {
		all <- nil
	}
	return all
}

// look reads an arena from end to end and reports its spans in order, on the calling goroutine.
func (run scanner) look(ctx context.Context, device int, tell func(from, to int64, poisoned bool)) error {
	parts := make(chan chan []span, cap(run.buffers)-1) // in the arena's order
	var err error
	go func() {
		defer close(parts)
		err = run.readAll(ctx, device, func(at int64, data []byte) {
			found := make(chan []span, 1)
			parts <- found
			go func() {
				found <- spansOf(at, data)
				run.buffers <- data[:cap(data)]
			}()
		})
	}()
	join := spans{tell: tell}
	for found := range parts {
		for _, one := range <-found {
			join.is(one.poisoned, one.to-one.from)
		}
	}
	join.end()
	return err
}

// readAll reads an arena in ranges, each into one of the buffers.
func (run scanner) readAll(ctx context.Context, device int, each func(at int64, data []byte)) error {
	arena := run.job.Program.Devices[device].Arena
	for at := int64(0); at < arena; at += looked {
		data := <-run.buffers
		if int64(len(data)) < min(looked, arena) {
			data = make([]byte, min(looked, arena))
		}
		data = data[:min(looked, arena-at)]
		if err := run.machine.Read(device, at, data); err != nil {
			return err
		}
		each(at, data)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// spansOf returns the spans of bytes that begin at an offset in the arena.
func spansOf(at int64, data []byte) []span {
	var found []span
	cut := spans{tell: func(from, to int64, poisoned bool) {
		found = append(found, span{at + from, at + to, poisoned})
	}}
	cut.take(data)
	cut.end()
	return found
}
