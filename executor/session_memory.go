package executor

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
)

// CheckMemory finds out, before anything is mapped, whether the arenas of each session alone
// fit on its devices. If arenas are to be retained, the copies of all sessions must fit into
// the host's memory. An error is of the session at that index: a [*MemoryError], or
// [ErrMemory] of the host. No memory remains allocated.
func CheckMemory(ctx context.Context, sessions []*Session, keep bool) (at int, err error) {
	return checkMemoryIn(ctx, sessions, keep, hostmemory.Limits())
}

func checkMemoryIn(ctx context.Context, sessions []*Session, keep bool, host []hostmemory.FreeMemory) (at int, err error) {
	others := int64(0) // of the copies
	for at, session := range sessions {
		if err := session.checkMemory(ctx); err != nil {
			return at, err
		}
		if !keep {
			continue
		}
		retained := session.state.bound.Retained()
		if err := hostLacks(retained, others, host); err != nil {
			return at, err
		}
		others += retained
	}
	return 0, nil
}

// checkMemory checks whether a session's arenas fit.
func (session *Session) checkMemory(ctx context.Context) error {
	state := session.sharedState()
	if err := state.bind(); err != nil {
		return err
	}
	if backend, is := session.Backend.(interface {
		CheckMemory(ctx context.Context, bound *bind.Bound) error
	}); is {
		return backend.CheckMemory(ctx, state.bound)
	}
	return nil
}

// hostReserve is left to this and other processes for everything but retained copies.
const hostReserve = 256 << 20

// hostLacks returns an error if a copy does not fit into the host's memory.
func hostLacks(retained, others int64, limits []hostmemory.FreeMemory) error {
	tightest := hostmemory.Tightest(limits, hostmemory.FreeMemory{Free: retained + others + hostReserve})
	if free := max(0, tightest.Free-hostReserve); retained+others > free {
		note := ""
		if others > 0 {
			note = fmt.Sprintf(" and other copies %v", costmodel.Bytes(others))
		}
		return fmt.Errorf("its kept copy takes %v%s, and %s has %v free: %w; without --keep host every turn loads again",
			costmodel.Bytes(retained), note, tightest.Place, costmodel.Bytes(free), ErrMemory)
	}
	return nil
}
