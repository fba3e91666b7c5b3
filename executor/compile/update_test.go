package compile

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// TestUpdate: every step that updates weights is clipped by the sum of all
// norms, and adds up the gradients of all uses of a tied weight.
func TestUpdate(t *testing.T) {
	updates, tied := 0, 0
	for seed := range uint64(600) {
		plan := newRandomPlan(rand.New(rand.NewPCG(seed, 5)))
		if plan.table.Workload.Mode != costmodel.Train {
			continue
		}
		out := plan.compile(t)
		for index := range out.Instrs {
			reads, writes := touched(out, &out.Instrs[index])
			if !slices.ContainsFunc(writes, func(name string) bool { return strings.HasSuffix(name, ".weights") }) || out.Instrs[index].Op != program.Step {
				continue
			}
			updates++
			if !slices.ContainsFunc(reads, func(name string) bool { return strings.HasPrefix(name, "total") }) {
				t.Fatalf("seed %d: %s is not clipped", seed, out.Line(int32(index)))
			}
			last := plan.table.Units[len(plan.table.Units)-1].Regions
			if len(last.Tied) == 0 || last.Grads == 0 || !slices.Contains(writes, "unit.0.weights") {
				continue
			}
			tied++
			gradients := 0
			for _, name := range reads {
				if strings.HasSuffix(name, ".grads") || strings.HasPrefix(name, "tied[0]_") {
					gradients++
				}
			}
			if gradients != 2 {
				t.Fatalf("seed %d: %s adds %d gradients up, want those of both uses", seed, out.Line(int32(index)), gradients)
			}
		}
	}
	if updates < 500 || tied < 50 {
		t.Errorf("%d updates, %d of tied weights: the draw is one-sided", updates, tied)
	}
}

// touched are the names of the buffers that an instruction reads, and that it
// writes or adds to.
func touched(out *program.Program, instr *program.Instr) (reads, writes []string) {
	for _, access := range out.Accesses[instr.FirstAccess:instr.EndAccess] {
		name := out.Buffers[access.Buffer].Name
		if access.Mode == program.Read {
			reads = append(reads, name)
		} else {
			writes = append(writes, name)
		}
	}
	return reads, writes
}
