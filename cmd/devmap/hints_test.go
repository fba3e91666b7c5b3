package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestHints: each printed change runs as printed, exits with 0 if it fits, and has the hint's
// figures.
func TestHints(t *testing.T) {
	for name, c := range map[string]struct {
		flags string
		want  []string // prefixes of the printed hints
	}{
		"a batch brings its parts":             {"--gpus 2 --gpu rtx-4090 --mode train --preset accelerate-loop --batch 16 --micro-batches 16 --pin lm_head=1", []string{"--batch 1 --micro-batches 1 --optimizer adamw-8bit --recompute full"}},
		"a runtime that the strategy has not":  {"--gpus 4 --gpu a100-40gb --mode train --batch 2 --strategy ddp --runtime lightning", []string{"--micro-batches 2 --strategy pipeline --runtime torch --schedule "}},
		"a schedule that the strategy has not": {"--gpus 4 --gpu a100-40gb --mode train --preset accelerate-loop --batch 16 --micro-batches 16 --strategy pipeline --schedule gpipe", []string{"--batch 4 --micro-batches 4", "--strategy fsdp (without --schedule)"}},
		"capacities":                           {"--gpus 16GiB,20GiB --reserve 1GiB,2GiB --mode train --recompute full", []string{"--gpus 16GiB,20GiB,20GiB"}},
		"pins":                                 {"--gpus 4 --gpu a100-40gb --mode train --pin lm_head=0 --batch 2", []string{"--contiguous=false", "--micro-batches 2 --strategy pipeline --schedule interleaved (without --pin)"}},
		"inference":                            {"--gpus 12GiB --batch 8", []string{"--gpus 12GiB,12GiB", "--offload cpu"}},
		"activations in host memory":           {"--gpus 20GiB,20GiB,20GiB,20GiB --mode train --batch 16 --micro-batches 8 --strategy pipeline --runtime devmap", []string{"--offload-activations full", "--recompute full"}},
		"all of them":                          {"--gpus 17GiB,17GiB,17GiB,17GiB --mode train --batch 16 --micro-batches 8 --strategy pipeline --runtime devmap --offload-activations full", []string{"--recompute full"}},
		"the shortest step":                    {"--gpus 2 --gpu rtx-4090 --mode train --objective time", []string{"--lora-rank 16", "--gpus 3"}},
	} {
		t.Run(name, func(t *testing.T) { followAll(t, "plan", "llama-3.1-8b", strings.Fields(c.flags), c.want) })
	}
	t.Run("estimate", func(t *testing.T) {
		followAll(t, "estimate", "llama-3.1-8b", strings.Fields("--gpus 2 --gpu rtx-4090 --mode train --batch 4"), []string{"--gpus "})
	})
	t.Run("explained", func(t *testing.T) {
		followAll(t, "plan", "gpt2", strings.Fields("--gpus 4 --mode train --strategy auto --batch 4 --explain"), []string{"--gpus 3", "--recompute full"})
	})
}

// settings returns typed flags, each with its value.
func settings(typed []string) []setting {
	var out []setting
	for i, w := range typed {
		name, isFlag := strings.CutPrefix(w, "--")
		if !isFlag {
			continue
		}
		name, value, joined := strings.Cut(name, "=")
		if !joined && i+1 < len(typed) && !strings.HasPrefix(typed[i+1], "--") {
			value = typed[i+1]
		}
		out = append(out, setting{name, value})
	}
	return out
}

func followAll(t *testing.T, command, model string, typed, want []string) {
	t.Helper()
	var document, errs bytes.Buffer
	status := run(t.Context(), slices.Concat([]string{command, model, "--json"}, typed), &document, &errs)
	hints := remedies(errs.String())
	if status == out.ExitDone {
		p := fixtures.Must(readPlan(document.Bytes()))(t)
		hints = advised(errs.String(), p.Warnings)
	}
	for _, w := range want {
		if !slices.ContainsFunc(hints, func(h hint) bool { return strings.HasPrefix(h.flags+":", w) }) {
			t.Errorf("no %q among %+v", w, hints)
		}
	}
	if len(hints) == 0 {
		t.Fatalf("exit status %d and no hint: %s", status, &errs)
	}
	for _, h := range hints {
		flags, err := follow(settings(typed), h)
		if err != nil {
			t.Error(err)
			continue
		}
		flags = slices.DeleteFunc(flags, func(w string) bool { return w == "--explain" })
		var errs bytes.Buffer
		if command == "estimate" && run(t.Context(), slices.Concat([]string{"estimate", model}, flags), &document, &errs) != out.ExitDone {
			t.Errorf("%s: %s", h.flags, &errs)
		}
		document.Reset()
		again := slices.Concat([]string{"plan", model, "--json"}, flags)
		if status := run(t.Context(), again, &document, &errs); h.fits && status != out.ExitDone || !h.fits && status != out.ExitInfeasible {
			t.Errorf("it says %q; devmap %s exits with %d: %s", h.flags, strings.Join(again, " "), status, &errs)
			continue
		}
		if !h.fits || h.figure == "" || strings.Contains(h.flags, "contiguous") {
			continue
		}
		p := fixtures.Must(readPlan(document.Bytes()))(t)
		if !slices.Contains(p.figures(), h.figure) {
			t.Errorf("it says %q comes to %s; devmap %s says %v", h.flags, h.figure, strings.Join(again, " "), p.figures())
		}
	}
}
