package torchcheck

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

//go:embed python
var python embed.FS

// parts are the files that a strategy's program is made of, in order.
func parts(strategy costmodel.Strategy) []string {
	switch traits := strategy.Traits(); {
	case traits.Staged:
		return []string{"start", "ranks", "stages", "end"}
	case traits.Replicated:
		return []string{"start", "ranks", "replicas", "end"}
	}
	return []string{"start", "device_map", "end"}
}

// Write writes the program for a plan of a model with this config.json. What it
// could not run as the plan counts it is an error.
func Write(to io.Writer, plan *devicemap.Plan, config []byte) error {
	if err := refuse(plan, config); err != nil {
		return err
	}
	task, err := literal(jobOf(plan))
	if err != nil {
		return err
	}
	fields, err := literal(jsontext.Value(config))
	if err != nil {
		return err
	}
	text := new(strings.Builder)
	fmt.Fprintf(text, "\"\"\"%s\"\"\"\n\n", about(plan))
	for _, part := range parts(plan.Workload.Strategy) {
		source, err := python.ReadFile("python/" + part + ".py")
		if err != nil {
			return err
		}
		if part != "start" {
			text.WriteString("\n\n")
		}
		text.Write(source)
	}
	_, err = strings.NewReplacer("@JOB@", task, "@CONFIG@", fields).WriteString(to, text.String())
	return err
}

// literal is JSON that stands in a raw string between three quotation marks: in
// JSON no three follow each other, as one that is meant has a backslash before it.
func literal(value any) (string, error) {
	text, err := json.Marshal(value, jsontext.Multiline(true), jsontext.WithIndent(" "))
	return string(text), err
}

// Usage is how the program is run.
func Usage(plan *devicemap.Plan, file string) string {
	if plan.Workload.Strategy.Traits().Sequential {
		return "python3 " + file
	}
	usage := fmt.Sprintf("torchrun --nproc-per-node %d %s", len(plan.Devices), file)
	if plan.Workload.Strategy == costmodel.DDP { // its reducer needs a group that answers
		return usage
	}
	return usage + ", or one rank of them on one GPU: python3 " + file + " --rank 0"
}

// about is the program's own description: no word of a plan is in it, so that it
// is safe between quotation marks.
func about(plan *devicemap.Plan) string {
	return `Does PyTorch hold on every GPU what devmap predicted?

Builds the plan's model with random weights, runs some steps, and prints the peaks beside those of the plan.
Exit status 0: within the bound; 4: outside; 1: it could not run.

Run: ` + Usage(plan, "FILE") + "\n"
}
