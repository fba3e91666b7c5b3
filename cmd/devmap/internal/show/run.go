package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Title prints what runs and where, in a line.
func (printer *Printer) Title(gpus string) {
	printer.printf("%s, %s%s on %s", out.Cell(printer.graph.Name), printer.doing(), printer.how(), gpus)
}

// Run prints a run's measurements: the arenas compared with their plan, the losses, the time by
// activity, the generated tokens, and the verdict. Argument gpus names the GPUs, and is empty if
// the CPU reference ran.
func (printer *Printer) Run(placed devicemap.Map, ran *report.Report, gpus string) {
	if gpus == "" {
		gpus = reference(ran)
	}
	rows := &runTables{Printer: printer, placed: placed, Report: ran}
	title := fmt.Sprintf("%s, %s%s: %s on %s", out.Cell(printer.graph.Name), printer.doing(), printer.how(), rows.did(), gpus)
	printer.printf("%s\n%s\n%s%s", out.Block(joined(strings.Split(title, ", "), ", ", "  ", printer.width)),
		out.Block(rows.arenas()), out.Block(rows.legend()), out.Block(rows.unwritten()))
	printer.printf("%s", out.Block(rows.gpus()))
	printer.printf("%s", out.Block(rows.loaded()))
	if len(ran.Steps) > 0 {
		printer.printf("%s%s%s", out.Block(rows.losses()), out.Block(rows.times()), out.Block(rows.generated()))
		printer.printf("%s\n", wrapped(rows.speed(), printer.width))
	}
	printer.printf("imbalance %.3f, predicted %.3f\n%s\n", ran.Imbalance.Measured, ran.Imbalance.Predicted, wrapped(string(ran.Verdict)+": "+strings.Join(ran.Reasons, "; "), printer.width))
}

// wrapped breaks a sentence into lines of the width.
func wrapped(sentence string, width int) out.Block {
	return out.Block(joined(strings.Split(sentence, " "), " ", "  ", width))
}

// reference names the CPU reference that ran.
func reference(ran *report.Report) string {
	return "the CPU reference in place of " + Plural(len(ran.Devices), "GPU")
}

// Ran returns what ran in place of GPUs, empty if GPUs ran, and the speed, empty without steps.
func Ran(ran *report.Report) (on, speed string) {
	rows := &runTables{Report: ran}
	if len(ran.GPUs) == 0 {
		on = reference(ran)
	}
	if len(ran.Steps) > 0 && ran.TokensPerSecond != nil && ran.StepSeconds.Measured != nil {
		speed = rows.speed()
	}
	return on, speed
}

// BrokenOff prints the results of a failed run, which title names.
func BrokenOff(to io.Writer, title string, ran *report.Report) {
	say := func(format string, args ...any) {
		out.Say(to, format, args...) //nolint:errcheck // nothing to do about a closed stderr
	}
	say("%s: failed\n", title)
	if steps := len(ran.Steps); steps > 0 {
		say("%s before that\n", Plural(steps, "step"))
	}
	const few = 2
	if len(ran.Reasons) <= few {
		say("%s: %s\n", string(ran.Verdict), strings.Join(ran.Reasons, "; "))
		return
	}
	for i, reason := range ran.Reasons {
		if i == 0 {
			say("%s: %s\n", string(ran.Verdict), reason)
			continue
		}
		say("  %s\n", reason)
	}
}

type runTables struct {
	*Printer
	*report.Report

	placed devicemap.Map
}

func (rows *runTables) did() string {
	if len(rows.Steps) == 0 {
		return "loaded"
	}
	return "ran " + Plural(len(rows.Steps), "step")
}

// stepRows is the most steps shown; of more steps, the first and the last ones are.
const stepRows = 12

// losses returns the loss of every training step.
func (rows *runTables) losses() string {
	if rows.Steps[0].Loss == nil {
		return ""
	}
	table := texttab.New("step", "loss", "took")
	table.Right(0, 1, 2)
	for _, step := range shortened(int64(len(rows.Steps)), stepRows) {
		if step < 0 {
			table.Row("…", "", "")
			continue
		}
		table.Row(rows.Steps[step].Step, fmt.Sprintf("%.6f", *rows.Steps[step].Loss), Seconds(rows.Steps[step].Seconds))
	}
	return "\n" + table.String() + "\n"
}
