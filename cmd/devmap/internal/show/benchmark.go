package show

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/planner/benchmark"
)

// Benchmark prints the answer of a benchmark file: the table and the certificate.
func Benchmark(to io.Writer, file string, answer *benchmark.Answer, explain bool) {
	to = out.Asides(to)
	writer := table.NewWriter()
	writer.SetStyle(table.StyleLight)
	writer.AppendHeader(table.Row{"device", "nodes", "time", "transfers", "load", "GB"})
	for _, device := range answer.Devices {
		if device.Nodes == 0 {
			writer.AppendRow(table.Row{device.Name, "–"})
			continue
		}
		writer.AppendRow(table.Row{
			device.Name, device.Nodes, fmt.Sprintf("%.4f", device.Time), fmt.Sprintf("%.4f", device.Transfers),
			fmt.Sprintf("%.4f", device.Time+device.Transfers), fmt.Sprintf("%.2f", device.Bytes/1e9),
		})
	}
	say := func(format string, args ...any) { out.Say(to, format+"\n", args...) } //nolint:errcheck // a message
	say("%s, %s (%s)\n%s", out.Cell(file), answer.Form, answer.Unit, out.Block(writer.Render()))
	say("largest load %.6g · lower bound %.6g (gap %.2f %%) · %s", answer.Value, answer.LowerBound, 100*answer.Gap(), answer.Status)
	if explain {
		say("method: %s\nbound: %s", answer.Method, answer.Bound)
	}
}
