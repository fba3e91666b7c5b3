package show

import (
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestSheet: a table loses its spare columns in turn until it fits, and no others.
func TestSheet(t *testing.T) {
	made := &sheet{headings: []string{"Name", "A", "B", "C"}, left: []string{"Name"}, spare: []string{"B", "A"}, compact: true, rows: [][]any{{"x", "1234567890", "1234567890", "1234567890"}}}
	for _, c := range []struct {
		width int
		lost  []string
	}{{80, nil}, {32, []string{"B"}}, {20, []string{"B", "A"}}, {5, []string{"B", "A"}}} {
		table, lost := made.fitting(c.width, nil)
		if !slices.Equal(lost, c.lost) || c.width > 5 && text.LongestLineLen(table) > c.width || strings.Count(table, "1234567890") != 3-len(lost) {
			t.Errorf("%d columns: %v left out of\n%s", c.width, lost, table)
		}
	}
	if line := leftOut([]string{"B", "A"}); line != "Columns left out: B, A." || leftOut(nil) != "" {
		t.Errorf("%q", line)
	}
}

// TestStrategyWidth: the table of estimate fits a terminal of 80 columns.
func TestStrategyWidth(t *testing.T) {
	cells := strategy.Row{Current: true, Tokens: 1_000_000}
	cells.Resolved.Runtime = "torch / lightning"
	cells.Solution = &planner.Solution{Devices: make([]devicemap.Prediction, 1)}
	for _, width := range []int{100, 80} {
		if table, _ := strategyTable([]strategy.Row{cells}, &costmodel.Workload{}, width); text.LongestLineLen(table) > width {
			t.Errorf("%d columns:\n%s", width, table)
		}
	}
}

// TestHanging: a note is wrapped with an indent, and no word is lost.
func TestHanging(t *testing.T) {
	line := "note: " + strings.Repeat("twelve chars ", 20)
	wrapped := hanging(strings.TrimSpace(line), 80)
	lines := strings.Split(wrapped, "\n")
	for i, one := range lines {
		if text.StringWidth(one) > 80 || i > 0 && !strings.HasPrefix(one, "  ") {
			t.Errorf("line %d: %q", i, one)
		}
	}
	if len(lines) < 3 || strings.Join(strings.Fields(wrapped), " ") != strings.TrimSpace(line) {
		t.Errorf("%q", wrapped)
	}
}
