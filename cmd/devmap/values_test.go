package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden has the values of a small model from Transformers.
// cmd/devmap/internal/conformance/python/goldens.py makes them and explains the fields.
type golden struct {
	MadeWith  string                `json:"made_with"`
	Config    json.RawMessage       `json:"config"`
	Tensors   map[string]formula    `json:"tensors"`
	Batch     int                   `json:"batch"`
	IDs       [][]int               `json:"ids"`
	Logits    []float64             `json:"logits"`
	Hidden    float64               `json:"hidden"`
	Gradients map[string][2]float64 `json:"gradients"`
	Tokens    []int                 `json:"tokens"`
	Losses    []float64             `json:"losses"`
}

// TestValues runs small models of every family as users do, on one device and on two, and compares
// logits, gradients, losses and tokens with Transformers'.
func TestValues(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "values", "*.json"))
	if err != nil || len(files) != 10 {
		t.Fatalf("%d files of values, not 10 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			bench := &valueBench{t: t, folder: t.TempDir()}
			if err := json.Unmarshal(data, &bench.want); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			bench.writeModel()
			for _, spread := range []string{"--gpus 1", "--gpus 2 --strategy pipeline"} {
				bench.infer(spread)
				if bench.want.Losses != nil {
					bench.decode(spread)
					bench.train(spread + " --micro-batches 2")
				}
			}
		})
	}
}

// valueBench is one model in a folder of its own.
type valueBench struct {
	t      *testing.T
	folder string
	want   golden
	plans  int
}

func (bench *valueBench) infer(spread string) {
	logits, hidden := bench.path("logits"), bench.path("hidden")
	bench.run("infer "+spread, bench.want.Batch, 0, "--dump", "logits="+logits, "--dump", "hidden="+hidden)
	got := bench.only(logits, "logits")
	if apart := distance(got, bench.want.Logits); !(apart < 1e-5) {
		bench.t.Errorf("%s: logits are %.2g apart from Transformers', at most 1e-5", spread, apart)
	}
	if got := norm(bench.only(hidden, "hidden")); !(math.Abs(got-bench.want.Hidden) < 1e-5*got) {
		bench.t.Errorf("%s: hidden states have the norm %v, not %v", spread, got, bench.want.Hidden)
	}
}

func (bench *valueBench) decode(spread string) {
	report := bench.run("infer "+spread, 1, len(bench.want.Tokens))
	if len(report.Tokens) != 1 || !slices.Equal(report.Tokens[0], bench.want.Tokens) {
		bench.t.Errorf("%s: tokens %v, not %v", spread, report.Tokens, bench.want.Tokens)
	}
}

func (bench *valueBench) train(spread string) {
	grads := bench.path("grads")
	report := bench.run("train "+spread, bench.want.Batch, 0, "--steps", fmt.Sprint(len(bench.want.Losses)), "--dump", "grads="+grads)
	got := bench.tensors(grads)
	if len(got) != len(bench.want.Gradients) {
		bench.t.Errorf("%s: %d gradients, not %d", spread, len(got), len(bench.want.Gradients))
	}
	whole := 0.0
	for _, want := range bench.want.Gradients {
		whole = math.Hypot(whole, want[0])
	}
	for name, want := range bench.want.Gradients {
		length, product := norm(got[name]), 0.0
		for i, value := range got[name] {
			product += value * sampleValue(name+".gradient", i)
		}
		// A gradient of almost zero has the tolerance of the others.
		if allowed := 1e-4 * max(want[0], 1e-4*whole); !(math.Abs(length-want[0]) < allowed) || !(math.Abs(product-want[1]) < allowed) {
			bench.t.Errorf("%s: the gradient of %s has the norm %v and the product %v, not %v", spread, name, length, product, want)
		}
	}
	for i, want := range bench.want.Losses {
		if i >= len(report.Steps) || !(math.Abs(report.Steps[i].Loss-want) < 2e-5*want) {
			bench.t.Fatalf("%s: step %d of %v, want the loss %v", spread, i+1, report.Steps, want)
		}
	}
}

// valueReport is the part of devmap.report/v1 that the test reads.
type valueReport struct {
	Tokens [][]int `json:"tokens"`
	Steps  []struct {
		Loss float64 `json:"loss"`
	} `json:"steps"`
	Verdict string `json:"verdict"`
}

// run plans and runs; spread begins with the mode.
func (bench *valueBench) run(spread string, batch, tokens int, flags ...string) *valueReport {
	bench.plans++
	plan := bench.path(fmt.Sprintf("%d.json", bench.plans))
	args := []string{"plan", bench.path("model"), "--runtime", "devmap", "--precision", "32-true", "-o", plan, "--batch", fmt.Sprint(batch), "--seq", fmt.Sprint(len(bench.want.IDs[0]))}
	if tokens > 0 {
		args = append(args, "--new-tokens", fmt.Sprint(tokens))
		flags = append(flags, "--new-tokens", fmt.Sprint(tokens))
	}
	bench.devmap(append(args, strings.Fields("--mode "+spread)...)...)
	var report valueReport
	out := bench.devmap(append([]string{"run", plan, "--json", "--force", "--tokens", bench.path("ids")}, flags...)...)
	if err := json.Unmarshal(out, &report); err != nil || report.Verdict != "pass" {
		bench.t.Errorf("%s: the report's verdict is %q (%v)", spread, report.Verdict, err)
	}
	return &report
}

func (bench *valueBench) devmap(args ...string) []byte {
	bench.t.Helper()
	var stderr bytes.Buffer
	command := exec.CommandContext(bench.t.Context(), "devmap", args...) // this test's binary, on its PATH
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		bench.t.Fatalf("devmap %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

func (bench *valueBench) path(name string) string { return filepath.Join(bench.folder, name) }
