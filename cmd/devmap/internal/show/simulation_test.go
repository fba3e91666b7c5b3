package show

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestSimulatedCopies: copies to the host and back are neither computing nor sending.
func TestSimulatedCopies(t *testing.T) {
	t.Parallel()
	for _, offload := range []string{"", costmodel.OffloadAll} {
		wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Batch: 4, MicroBatches: 4, Seq: 8, OffloadActivations: offload}
		job := fixtures.Must(backendtest.Compiled("llama", wanted, 1, 1))(t)
		for i := range job.Program.Instrs {
			instr := &job.Program.Instrs[i]
			if instr.Ticks = 1e9; instr.Op == program.Store || instr.Op == program.Fetch {
				instr.Ticks = 1e11 // the chain has to wait for some
			}
		}
		for _, pass := range fixtures.Must(passesOf(job.Program))(t) {
			if pass.stage >= len(job.Program.Devices) {
				t.Errorf("%q: %v is a pass of stage %d, and there are %d", offload, &pass, pass.stage, len(job.Program.Devices))
			}
		}
		sim := &Simulation{Name: "llama", Program: job.Program, Report: job.Program.Check(), Result: fixtures.Must(simulate.Run(job.Program))(t)}
		var text strings.Builder
		if err := sim.Print(&text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if strings.HasPrefix(line, "longest chain") && utf8.RuneCountInString(line) > maxWidth+1 {
				t.Errorf("%q: more than %d columns: %s", offload, maxWidth, line)
			}
		}
		moves := offload != ""
		if got := strings.Contains(text.String(), "  copies\n"); got != moves {
			t.Errorf("%q: %s", offload, text.String())
		}
		if got := strings.Contains(text.String(), "copying to the host and back, 0 ms sending, 0 ms on the way\n"); got != moves {
			t.Errorf("%q: %s", offload, text.String())
		}
	}
}
