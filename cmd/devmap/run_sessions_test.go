package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/executor/weights"
)

// opener is an [executor.Backend]; the type Bound has no exported name.
type opener[Bound any] interface {
	Name() string
	Open(ctx context.Context, bound Bound) (executor.Machine, error)
}

// dozing is a backend whose machines keep all their memory when they sleep. Its open counts the
// machines that are not closed; closing one returns err.
type dozing[Bound any] struct {
	opener[Bound]

	open *int
	err  error
}

func doze[Bound any](backend opener[Bound], open *int, err error) *dozing[Bound] {
	return &dozing[Bound]{backend, open, err}
}

func (dozing *dozing[Bound]) Open(ctx context.Context, bound Bound) (executor.Machine, error) {
	machine, err := dozing.opener.Open(ctx, bound)
	if err == nil {
		*dozing.open++
	}
	return &sleepMachine{machine, dozing.open, dozing.err}, err
}

type sleepMachine struct {
	executor.Machine

	open *int
	err  error
}

func (*sleepMachine) Sleep(context.Context, func(bytes, of int64)) (bytes int64, err error) {
	return 0, nil
}

func (*sleepMachine) Wake(context.Context, func(bytes, of int64)) (mapped time.Duration, bytes int64, err error) {
	return 0, 0, nil
}

func (machine *sleepMachine) Close() error {
	*machine.open--
	return errors.Join(machine.err, machine.Machine.Close())
}

// TestSessionsAreClosed: after any end of a run, the memory of its sleeping plans is released. An
// error in the release is reported, too.
func TestSessionsAreClosed(t *testing.T) {
	t.Parallel()
	job, err := backendtest.Compiled("llama", costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.DeviceMap, Batch: 1, MicroBatches: 1, Seq: 8}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	broken, stuck := errors.New("broken"), errors.New("stuck")
	for name, is := range map[string]struct {
		breaks  int // the turn that breaks, from 1; 0 for none
		closing error
		asleep  int // number of sleeping plans then
	}{
		"nothing fails":               {},
		"the first turn fails":        {breaks: 1},
		"another's turn fails":        {breaks: 2, asleep: 1},
		"a turn fails behind sleeps":  {breaks: 4, asleep: 2},
		"closing fails":               {closing: stuck},
		"a turn and the closing fail": {breaks: 3, closing: stuck, asleep: 2},
	} {
		open, turns := 0, 0
		runs := make([]planRun, 2)
		for i := range runs {
			runs[i] = planRun{file: []string{"a.json", "b.json"}[i], settings: executor.Settings{Steps: 1, Weights: weights.Random(job.Graph, 1)}}
			runs[i].session = executor.Session{Backend: doze(cpu.New(), &open, is.closing), Job: job}
		}
		command := &runCommand{Request: &ask.Request{Run: ask.Run{Cycles: 2, Keep: ask.Host}}}
		err := command.takeTurns(context.Background(), runs, func(turn *turn) (*report.Report, error) {
			turns++
			if turns == is.breaks {
				if open != is.asleep {
					t.Errorf("%s: %d machines sleep, want %d", name, open, is.asleep)
				}
				return nil, broken
			}
			_, err := turn.session.Turn(context.Background(), turn.asked())
			return &report.Report{}, err
		})
		if errors.Is(err, broken) != (is.breaks > 0) || errors.Is(err, stuck) != (is.closing != nil) || err != nil && is.breaks == 0 && is.closing == nil {
			t.Errorf("%s: %v", name, err)
		}
		if is.closing != nil && !strings.Contains(err.Error(), "closing a.json: stuck") {
			t.Errorf("%s: %v", name, err)
		}
		if open != 0 {
			t.Errorf("%s: %d machines are open", name, open)
		}
	}
}
