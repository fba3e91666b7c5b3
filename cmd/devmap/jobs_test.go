package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestJobFiles: a plan of the file that emit writes for a training program is the
// plan that the file was written from.
func TestJobFiles(t *testing.T) {
	methods := []string{
		"--batch 4 --micro-batches 2 --recompute full", "--batch 2 --recompute none --optimizer adamw-8bit --attention eager",
		"--batch 2 --lora-rank 8 --lora-targets q_proj,v_proj", "--batch 1 --lora-rank 16 --lora-targets all-linear --quantize nf4",
	}
	for _, c := range []struct{ engine, preset, strategies, outside string }{
		{"transformers", "transformers", "ddp fsdp", "lora quantize attention seq"}, // its script makes adapters and loads the model
		{"trl", "trl-sft", "ddp fsdp", ""},
		{"llamafactory", "llamafactory", "ddp fsdp", ""},
		{"axolotl", "axolotl", "ddp fsdp", ""},
	} {
		for _, strategy := range strings.Fields(c.strategies) {
			for _, method := range methods {
				switch {
				case strings.Contains(method, "lora") && strings.Contains(c.outside, "lora"):
					continue
				case c.engine == "axolotl" && strategy == "fsdp" && (strings.Contains(method, "lora") || strings.Contains(method, "8bit")):
					continue // devmap counts no adapters there, and axolotl refuses the optimizer
				}
				t.Run(strings.Join([]string{c.engine, strategy, method}, " "), func(t *testing.T) {
					t.Parallel()
					folder := t.TempDir()
					plan, job, again := filepath.Join(folder, "plan.json"), filepath.Join(folder, "job.yaml"), filepath.Join(folder, "again.json")
					same := strings.Fields("qwen2.5-0.5b --gpus 4 --gpu h200-141gb --preset")
					var given []string
					if c.outside != "" {
						given = []string{"--seq", "512"}
						if strings.Contains(method, "eager") {
							given = append(given, "--attention", "eager")
						}
					}
					flags := append(append(same[:len(same):len(same)], c.preset, "--strategy", strategy, "--seq", "512", "-o", plan), strings.Fields(method)...)
					devmap(t, 0, append([]string{"plan"}, flags...)...)
					devmap(t, 0, "emit", plan, "--for", c.engine, "-o", job)
					devmap(t, 0, append(append([]string{"plan"}, append(same[:len(same):len(same)], job, "-o", again)...), given...)...)
					first, second := workloadOf(t, plan), workloadOf(t, again)
					if !reflect.DeepEqual(first, second) {
						t.Errorf("the plan of the file is\n%+v, want\n%+v", second, first)
					}
				})
			}
		}
	}
}

// workloadOf is the workload of a plan in a file.
func workloadOf(t *testing.T, file string) costmodel.Workload {
	t.Helper()
	plan, err := devicemap.ReadPlan(file)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Workload
}
