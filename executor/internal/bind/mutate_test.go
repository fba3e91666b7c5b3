package bind_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestMutated: an instruction that names another buffer, lacks one or has it in
// another mode has no place for a tensor, and the error says where.
func TestMutated(t *testing.T) {
	graph := fixtures.Must(backendtest.Graph(backendtest.Families["qwen2"]))(t)
	random := rand.New(rand.NewPCG(12, 2))
	stale, alone := 0, 0 // changes that bind, and those that bind and not Check finds
	for _, name := range []string{"train", "recompute", "infer", "generate", "offloaded"} {
		for _, schedule := range backendtest.Schedules {
			workload := backendtest.Workloads()[name]
			if name == "offloaded" {
				if schedule == "" {
					continue // a device map
				}
				workload = backendtest.Workloads()["train"]
				workload.OffloadActivations = costmodel.OffloadAll
			}
			job := fixtures.Must(backendtest.Cut{Devices: 2, Schedule: schedule, MicroBatches: 3, Seed: 3}.Job(graph, workload))(t)
			for range 60 {
				mutated := *job.Program
				mutated.Accesses = slices.Clone(mutated.Accesses)
				what, before, at := mutate(&mutated, random, name == "offloaded")
				sound := mutated.Check().Err() == nil
				switch _, err := bind.New(job.Graph, job.Workload, job.Recipe, &mutated); {
				case err == nil && sound:
					t.Errorf("%s of %s passes", what, mutated.Place(at))
				case err == nil:
					stale++ // another of its kind, which holds what another micro-batch left: Check's to find
				case strings.HasSuffix(err.Error(), "nothing has read the message in "+before):
				case !strings.HasPrefix(err.Error(), mutated.Place(at)+" "):
					t.Errorf("%s of %s: %v", what, mutated.Place(at), err)
				case sound:
					alone++
				}
			}
		}
	}
	if tried, most := 60*4*len(backendtest.Schedules), 5; stale > tried*most/100 {
		t.Errorf("%d of %d changes bind, want at most %d %%", stale, tried, most)
	}
	if alone == 0 {
		t.Error("what bind finds Check does too: the draw is one-sided")
	}
}

// mutate changes one access of an instruction that runs kernels, or of one that copies to the host or back.
func mutate(prog *program.Program, random *rand.Rand, copies bool) (what, before string, at int32) {
	for {
		at = int32(random.IntN(len(prog.Instrs)))
		instr := &prog.Instrs[at]
		moves := instr.Op == program.Store || instr.Op == program.Fetch
		if moves != copies || !moves && !instr.Op.Runs() && instr.Op != program.Step || instr.FirstAccess == instr.EndAccess {
			continue
		}
		access := &prog.Accesses[instr.FirstAccess+int32(random.IntN(int(instr.EndAccess-instr.FirstAccess)))]
		before = prog.Buffers[access.Buffer].Name
		name := before
		switch random.IntN(2) {
		case 0:
			other := int32(random.IntN(len(prog.Buffers)))
			if prog.Buffers[other].Device != instr.Device || other == access.Buffer {
				continue
			}
			what = "another buffer"
			access.Buffer = other
			name += " → " + prog.Buffers[other].Name
		case 1:
			if access.Mode == program.Read {
				continue
			}
			access.Mode = program.Read
			what = "only read"
		}
		return what + ": " + instr.Op.String() + " " + name, before, at
	}
}
