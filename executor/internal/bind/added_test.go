package bind_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestAdded: in training, what a product adds lies where it writes in every backward,
// and in no forward, however the model is cut: libraries make other bits of one than of
// the other.
func TestAdded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	places := make(map[program.Op]map[bool]int)
	for family, config := range backendtest.Families {
		graph := fixtures.Must(backendtest.Graph(config))(t)
		for way, workload := range backendtest.Workloads() {
			if workload.Mode != costmodel.Train || backendtest.Forwards(family) {
				continue
			}
			cut := backendtest.Cut{Devices: 1 + random.IntN(4), Schedule: backendtest.Schedules[random.IntN(len(backendtest.Schedules))], MicroBatches: 4, Seed: random.Uint64()}
			job, err := cut.Job(graph, workload)
			if err != nil {
				t.Fatalf("%s %s %+v: %v", family, way, cut, err)
			}
			bound := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(t)
			for i := range job.Program.Instrs {
				instr := fixtures.Must(bound.Instr(int32(i)))(t)
				for j := range instr.Runs {
					count(&instr.Runs[j], job.Program.Instrs[i].Op, places)
				}
			}
		}
	}
	t.Log(places)
	if len(places[program.Backward]) == 0 || places[program.Backward][false] > 0 || len(places[program.Forward]) == 0 || places[program.Forward][true]+places[program.Recompute][true] > 0 {
		t.Errorf("products that add, by whether they do in place: %v", places)
	}
}

// count counts products that add something, by whether it lies where they write.
func count(run *bind.Run, op program.Op, places map[program.Op]map[bool]int) {
	for i := range run.Kernels {
		at := make(map[string]int64)
		for j := range run.Kernels[i].Operands {
			operand := &run.Kernels[i].Operands[j]
			at[operand.Role] = run.Area(operand).Offset
		}
		add, adds := at["add"]
		if !adds || run.Kernels[i].Name != "gemm" {
			continue
		}
		if places[op] == nil {
			places[op] = make(map[bool]int)
		}
		places[op][add == at["d"]]++
	}
}
