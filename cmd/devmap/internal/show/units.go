package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
)

// Unit is a row of the table of units.
type Unit struct {
	Name            string
	Params, Buffers int64 // elements
	Bytes           int64 // of the parameters
	ActivationBytes int64
	FLOPs           float64
	Declared        bool // the model file gives its costs
}

// Units writes the table of a model's units. It is a result: a write error is returned.
func (printer *Printer) Units(to io.Writer, params, buffers int64, units []Unit) error {
	table := &sheet{
		headings: []string{"unit", "parameters", "bytes", "buffers", "GFLOPs", "activations kept", "costs are"},
		left:     []string{"unit", "costs are"}, spare: []string{"costs are", "buffers", "GFLOPs"},
	}
	var bytes int64
	for i := range units {
		unit := &units[i]
		bytes += unit.Bytes
		origin := "analytic" // computed from the dimensions of its operations
		if unit.Declared {
			origin = "declared"
		}
		table.rows = append(table.rows, []any{
			out.Cell(unit.Name), grouped(unit.Params), costmodel.Bytes(unit.Bytes), grouped(unit.Buffers),
			fmt.Sprintf("%.1f", unit.FLOPs/1e9), costmodel.Bytes(unit.ActivationBytes), origin,
		})
	}
	title := fmt.Sprintf("%s, %s parameters (%v) in %s, %s elements in buffers; %s",
		out.Cell(strings.TrimSpace(printer.graph.Name+" "+printer.graph.Class)), grouped(params), costmodel.Bytes(bytes),
		Plural(len(units), "unit"), grouped(buffers), printer.doing())
	width := max(out.Width(to), minWidth)
	if out.Terminal(to) {
		title = hanging(title, width)
	}
	text, lost := table.fitting(width, nil)
	return out.Say(to, "%s\n", out.Block(strings.TrimSuffix(title+"\n"+text+"\n"+leftOut(lost), "\n")))
}
