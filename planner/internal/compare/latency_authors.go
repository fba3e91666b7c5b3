package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/pose"
	"github.com/devmap-dev/devmap/planner/internal/solve/latency"
)

// runGreedy is what the authors' greedy program finds; published without it.
func (given *settings) runGreedy(ctx context.Context, path string, published float64) (float64, error) {
	if given.greedy == "" {
		return published, nil
	}
	_, warned, err := given.theirGreedy(ctx, path)
	if err != nil {
		return 0, err
	}
	return numberAfter(warned, "objective = ")
}

// judgeLatency has the authors' program work out the latency of an answer.
func (given *settings) judgeLatency(ctx context.Context, path string, file *benchfile.DNNPartitioning, solution *latency.Solution) error {
	if given.greedy == "" {
		return nil
	}
	split, err := os.CreateTemp("", "split*.json")
	if err != nil {
		return err
	}
	defer os.Remove(split.Name()) //nolint:errcheck // a temporary file
	err = errors.Join(pose.WriteLatency(split, file, pose.Latency(file), solution), split.Close())
	if err != nil {
		return err
	}
	said, warned, err := given.theirGreedy(ctx, path, "-computeLatency", split.Name())
	if err != nil {
		return err
	}
	value, err := numberAfter(said, "the latency of given split is: ")
	if err != nil || strings.Contains(warned, "Out Of Memory") || math.Abs(value-solution.Value) > 1e-3 {
		return fmt.Errorf("the authors' program gives %q (%q) where we have %v: %w", said, warned, solution.Value, err)
	}
	return nil
}

// theirGreedy runs the authors' latency-greedy/greedy.cpp on a file.
func (given *settings) theirGreedy(ctx context.Context, path string, args ...string) (said, warned string, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer in.Close()                                       //nolint:errcheck // read only
	cmd := exec.CommandContext(ctx, given.greedy, args...) //nolint:gosec // the user's own program
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", "", fmt.Errorf("the authors' program: %w", err)
	}
	return stdout.String(), stderr.String(), nil
}

func numberAfter(text, words string) (float64, error) {
	_, after, _ := strings.Cut(text, words)
	line, _, _ := strings.Cut(after, "\n")
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}
