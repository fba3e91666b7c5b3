package simulate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

type traceEvent struct {
	Phase    string          `json:"ph"`
	Name     string          `json:"name"`
	Category string          `json:"cat"`
	Process  int             `json:"pid"`
	Thread   int             `json:"tid"`
	Time     float64         `json:"ts"`
	Duration float64         `json:"dur"`
	ID       int             `json:"id"`
	Binding  string          `json:"bp"`
	Args     json.RawMessage `json:"args"`
}

// TestTrace reads a trace as the viewers do. Nothing overlaps on a thread, each message is an arrow
// between two events, and the counter ends with the step.
func TestTrace(t *testing.T) {
	for _, timed := range []bool{true, false} {
		prog := schedule(costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 3, Chunks: 2, MicroBatches: 6}, 2, costs{forward: 1_234_567, backward: 2_000_001, send: 7, latency: 3})
		prog.Timed = timed
		result := run(t, prog)
		var text bytes.Buffer
		if err := simulate.WriteTrace(&text, prog, result); err != nil {
			t.Fatal(err)
		}
		var trace struct {
			TraceEvents []traceEvent `json:"traceEvents"`
		}
		if err := json.Unmarshal(text.Bytes(), &trace); err != nil {
			t.Fatal(err)
		}
		ticks := 1e6 // a microsecond
		if !timed {
			ticks = 1e-3
		}
		holdTrace(t, prog, trace.TraceEvents, float64(result.Makespan)/ticks)
	}
}

func holdTrace(t *testing.T, prog *program.Program, events []traceEvent, end float64) {
	t.Helper()
	type thread struct{ process, number int }
	running, names, arrows := map[thread][]traceEvent{}, map[thread]string{}, map[int][2]*traceEvent{}
	counted := 0.0
	for i := range events {
		event := &events[i]
		at := thread{event.Process, event.Thread}
		switch event.Phase {
		case "X":
			running[at] = append(running[at], *event)
		case "s":
			arrows[event.ID] = [2]*traceEvent{event, nil}
		case "f":
			arrows[event.ID] = [2]*traceEvent{arrows[event.ID][0], event}
		case "C":
			counted = max(counted, event.Time)
		case "M":
			names[at] += event.Name
		default:
			t.Fatalf("a phase that is none: %+v", event)
		}
	}
	if counted != end {
		t.Errorf("the last count is at %v, want %v", counted, end)
	}
	for at, events := range running {
		if names[at] == "" {
			t.Errorf("%v has no name", at)
		}
		slices.SortFunc(events, func(one, other traceEvent) int { return int(one.Time*1e6) - int(other.Time*1e6) })
		for i := 1; i < len(events); i++ {
			if before := events[i-1]; before.Time+before.Duration > events[i].Time+1e-7 {
				t.Errorf("%v: %+v overlaps %+v", at, before, events[i])
			}
		}
	}
	// An end within an event is no other's: the one before may end where it begins.
	inside := func(end *traceEvent) bool {
		count := 0
		for _, event := range running[thread{end.Process, end.Thread}] {
			if event.Time <= end.Time && end.Time <= event.Time+event.Duration {
				count++
			}
		}
		return count == 1 || end.Phase == "s" && count > 0
	}
	sends := 0
	for _, instr := range prog.Instrs {
		if instr.Op == program.Send {
			sends++
		}
	}
	if len(arrows) != sends {
		t.Errorf("%d arrows, want %d", len(arrows), sends)
	}
	for id, arrow := range arrows {
		if arrow[1] == nil || !inside(arrow[0]) || !inside(arrow[1]) || arrow[0].Name != arrow[1].Name {
			t.Errorf("arrow %d from %+v to %+v has an end outside of all events", id, arrow[0], arrow[1])
		}
	}
}

// TestTraceUnwritten: a full disk is an error.
func TestTraceUnwritten(t *testing.T) {
	prog := exchange(1)
	if err := simulate.WriteTrace(broken{}, prog, run(t, prog)); !errors.Is(err, errBroken) {
		t.Errorf("%v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("no space left")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
