// Command peers plans the models of the README's table with devmap and with Accelerate, and prints
// both results. The configs are the same, with weights only, and each GPU is large enough for the
// whole model. Run it from the repository's root:
//
//	go run ./cmd/devmap/internal/peers -python python3
//
// It times devmap as a whole process, Accelerate's two calls, and separately Accelerate's import.
// If the Python has no Accelerate, the table has only devmap's columns.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

var models = []string{
	"llama-3.1-8b", "llama-3.2-1b", "gemma-2b", "mixtral-8x7b", "deepseek-v3", "qwen2.5-vl-3b",
	"llama-3_1-nemotron-ultra-253b-v1", "llama-3.1-405b",
}

var gpuCounts = []int{2, 4, 8}

// job is one row of the table.
type job struct {
	model string
	gpus  int
}

func main() {
	python := flag.String("python", cmp.Or(os.Getenv("PYTHON"), "python3"), "a Python that has Accelerate")
	flag.Parse()
	if err := run(os.Stdout, *python); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(stdout io.Writer, python string) error {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	binary := filepath.Join(dir, "devmap")
	build := exec.Command("go", "build", "-o", binary, "./cmd/devmap") //nolint:gosec // a path made here
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building devmap: %w\n%s", err, out)
	}
	peer, why := accelerate(python)
	writer := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(writer, "model\tGPUs\tdevmap GiB\tAccelerate GiB\tratio\tdevmap ms\tAccelerate ms\tratio\tbuild s\timport s\t")
	for _, model := range models {
		for _, count := range gpuCounts {
			j := job{model, count}
			own, err := measure(binary, j)
			if err != nil {
				return err
			}
			fmt.Fprintln(writer, row(j, own, peer[j]))
		}
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, cmp.Or(why, "GiB is the largest GPU; devmap ms is a whole process, Accelerate ms its map in-process, after build and import"))
	return err
}

// row returns the line of a job. theirs has the fields after its name, or is nil. The ratios are
// Accelerate's figure divided by devmap's.
func row(j job, own measured, theirs []string) string {
	if theirs == nil {
		return fmt.Sprintf("%s\t%d\t%.3f\t–\t–\t%.1f\t–\t–\t–\t–\t", j.model, j.gpus, own.gib, own.ms)
	}
	gib, ms := theirs[0], theirs[2]
	return fmt.Sprintf("%s\t%d\t%.3f\t%s\t%s\t%.1f\t%s\t%s\t%s\t%s\t", j.model, j.gpus,
		own.gib, gib, over(gib, own.gib), own.ms, ms, over(ms, own.ms), theirs[3], theirs[4])
}

func over(theirs string, own float64) string {
	value, err := strconv.ParseFloat(theirs, 64)
	if err != nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", value/own)
}

// accelerate runs the peer; why explains a failure in one line.
func accelerate(python string) (rows map[job][]string, why string) {
	cmd := exec.Command(python, append([]string{"fixtures/peers/accelerate_plan.py"}, models...)...) //nolint:gosec // the user names the Python
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, "Accelerate skipped, " + cmp.Or(lines[len(lines)-1], err.Error()+": set PYTHON to a Python that has it")
	}
	rows = map[job][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 7 {
			return nil, fmt.Sprintf("Accelerate skipped, its line has %d fields, not 7: %q", len(fields), line)
		}
		gpus, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Sprintf("Accelerate skipped, its line has no number of GPUs: %q", line)
		}
		rows[job{fields[0], gpus}] = fields[2:]
	}
	return rows, ""
}
