// Command conformance compares what `devmap run` computes on the CPU with PyTorch and Transformers:
// logits, hidden states, gradients, losses, tokens, bitwise equality, memory. It prints every
// figure with its threshold, and the seed of configurations, weights and tokens. It fails if a
// figure misses its threshold. Run it from the repository's root:
//
//	go run ./cmd/devmap/internal/conformance
//	go run ./cmd/devmap/internal/conformance -python PYTHON -only logits,gradients -seed 7
//
// It builds devmap and runs it as users do; the scripts in the folder python compare. Without
// -python they get a temporary environment. pip then installs PyTorch's default build of some
// gigabytes, unless its configuration names an index with the build for CPUs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	var asked request
	flag.StringVar(&asked.python, "python", os.Getenv("PYTHON"), "a Python that has python/requirements.txt; empty: a new environment")
	flag.StringVar(&asked.only, "only", "", "sections, with commas between: "+sections)
	flag.StringVar(&asked.seed, "seed", "", "seed of all random values; empty: any")
	flag.StringVar(&asked.configs, "draws", "4", "configurations of each family")
	flag.StringVar(&asked.models, "models", "", "of the section widths, with commas between")
	flag.StringVar(&asked.keep, "keep", "", "a folder that keeps every file and the configs of the figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := asked.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

const sections = "logits, rounding, trained, decode, gradients, losses, devices, resume, memory, language, widths, speed, checks"

// request has the flags of the command line.
type request struct{ python, only, seed, configs, models, keep string }

func (asked *request) run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "devmap-conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	binary := filepath.Join(folder, "devmap")
	if err := shown(ctx, "go", "build", "-o", binary, "./cmd/devmap"); err != nil {
		return err
	}
	scripts := filepath.Join(folder, "python")
	if err := os.CopyFS(scripts, python()); err != nil {
		return err
	}
	interpreter := asked.python
	if interpreter == "" {
		if interpreter, err = environment(ctx, folder); err != nil {
			return err
		}
	}
	return asked.conform(ctx, interpreter, filepath.Join(scripts, "conform.py"), binary)
}

// conform runs the script, which prints the table.
func (asked *request) conform(ctx context.Context, interpreter, script, binary string) error {
	args := []string{script, binary, "--only", asked.only, "--draws", asked.configs, "--models", asked.models, "--keep", asked.keep}
	if asked.seed != "" {
		args = append(args, "--seed", asked.seed)
	}
	command := exec.CommandContext(ctx, interpreter, args...) //nolint:gosec // the user names the Python
	// Write models in the folder that this program removes, however the script ends.
	command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TMPDIR="+filepath.Dir(binary))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	err := command.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return errors.New("a bar was missed")
	}
	return err
}

// shown runs a command and prints its output to stderr, apart from the table.
func shown(ctx context.Context, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...) //nolint:gosec // commands of ours
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %q: %w", name, args, err)
	}
	return nil
}
