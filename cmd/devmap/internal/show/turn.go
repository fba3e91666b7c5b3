package show

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
)

// Turn prints one of several turns in a line: its start, its steps and its end. It prints nothing
// for a plan with one turn. With reasons, it prints those of the verdict.
func (printer *Printer) Turn(ran *report.Report, reasons bool) {
	turn := ran.Turn
	if turn == nil {
		return
	}
	parts := []string{began(turn)}
	if steps := len(ran.Steps); steps > 0 {
		last := &ran.Steps[steps-1]
		text := fmt.Sprintf("%s of %s", Plural(steps, "step"), Seconds(*ran.StepSeconds.Measured))
		if last.Loss != nil {
			text += fmt.Sprintf(" up to step %d, loss %.4f", last.Step, *last.Loss)
		}
		parts = append(parts, text)
	}
	parts = append(parts, ended(turn))
	verdict := string(ran.Verdict)
	if reasons {
		verdict += ": " + strings.Join(ran.Reasons, "; ")
	}
	printer.printf("turn %d of %d, %s: %s; %s\n", turn.Cycle, turn.Of, out.Cell(ran.Plan), strings.Join(parts, ", "), verdict)
}

func began(turn *report.Turn) string {
	text := fmt.Sprintf("%s %v in %s", turn.Start, costmodel.Bytes(turn.StartBytes), Seconds(turn.StartSeconds))
	if turn.Start != "woken" {
		return text
	}
	text += fmt.Sprintf(" (mapped in %s", Seconds(turn.MapSeconds))
	if turn.CopySeconds > 0 {
		text += fmt.Sprintf(", copied at %.3g GB/s", float64(turn.StartBytes)/turn.CopySeconds/1e9)
	}
	return text + ")"
}

func ended(turn *report.Turn) string {
	if turn.EndBytes == 0 {
		return fmt.Sprintf("%s in %s", turn.End, Seconds(turn.EndSeconds))
	}
	return fmt.Sprintf("%s in %s with %v copied", turn.End, Seconds(turn.EndSeconds), costmodel.Bytes(turn.EndBytes))
}
