package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/posed"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// A file of a public partitioning problem names its own devices. Without
// --gpus and --topology it is solved as it stands, and the answer is written
// in the form of the problem's authors, whose programs can judge it.

const maxPosedBytes = 256 << 20

// posedFile is the format and content of a file that poses a problem of its
// own; any other file, and what cannot be read, is a model's.
func (c *planCommand) posedFile(arg string) (format benchfile.Format, data []byte) {
	if c.gpus != "" || c.topology != "" {
		return "", nil
	}
	info, err := os.Stat(arg)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPosedBytes {
		return "", nil
	}
	if data, err = os.ReadFile(arg); err != nil {
		return "", nil
	}
	var top map[string]jsontext.Value
	if json.Unmarshal(data, &top) != nil {
		return "", nil
	}
	return benchfile.FormatOf(data, func(member string) bool { _, ok := top[member]; return ok }), data
}

// posedFlags are those that mean something here.
var posedFlags = []string{"contiguous", "time-limit", "json", "output", "explain", "objective"}

func (c *planCommand) solvePosed(cmd *cobra.Command, file string, format benchfile.Format, data []byte) error {
	var other []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(posedFlags, f.Name) {
			other = append(other, "--"+f.Name)
		}
	})
	if c.objective == front {
		other = append(other, "--objective "+front)
	}
	if len(other) > 0 {
		return out.Usagef("%s names its own devices and costs, and is solved for its smallest largest load: %s would mean nothing here (with --gpus or --topology it is planned as a model)",
			file, strings.Join(other, ", "))
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), c.timeLimit)
	defer cancel()
	solve := c.posedDNN
	switch format {
	case benchfile.DNNPartitioningFormat:
	case benchfile.PiperFormat:
		solve = c.posedPiper
	default:
		return out.Usagef("%s names no devices: add --gpus N", file)
	}
	done := func() {}
	if !c.json {
		c.told, done = out.PosedProgress(cmd.ErrOrStderr())
	}
	a, err := solve(ctx, file, data)
	done()
	c.told = nil
	var tooLittle *posed.GraphTooLittle
	var noStages *posed.PipelineTooLittle
	if errors.As(err, &tooLittle) || errors.As(err, &noStages) {
		return &out.Infeasible{Err: err, Helps: c.outOfOrder(ctx, tooLittle, file, data)}
	}
	if err != nil {
		return err
	}
	if err := out.Write(cmd, c.out, a.write); err != nil {
		return err
	}
	if !c.json {
		a.print(cmd.ErrOrStderr(), file, c.explain)
	}
	return nil
}

// outOfOrder offers any assignment where it was contiguous placements alone
// that do not fit, and it does.
func (c *planCommand) outOfOrder(ctx context.Context, no *posed.GraphTooLittle, file string, data []byte) []string {
	if no == nil || !no.InOrder {
		return nil
	}
	other := *c
	other.contiguous = false
	a, err := other.posedDNN(ctx, file, data)
	if err != nil {
		return nil
	}
	return []string{fmt.Sprintf("--contiguous=false: largest load %.6g %s, fits", a.value, a.unit)}
}
