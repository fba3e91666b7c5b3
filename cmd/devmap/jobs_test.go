package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/torchcsv"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestJobFiles: planning from the file that emit writes for a training program gives the original
// plan.
func TestJobFiles(t *testing.T) {
	t.Parallel()
	methods := []string{
		"--batch 4 --micro-batches 2 --recompute full", "--batch 2 --recompute none --optimizer adamw-8bit --attention eager",
		"--batch 2 --lora-rank 8 --lora-targets q_proj,v_proj", "--batch 1 --lora-rank 16 --lora-targets all-linear --quantize nf4",
	}
	for _, c := range []struct{ engine, preset, strategies, outside string }{
		{"transformers", "transformers", "ddp fsdp zero2 zero3", "lora quantize attention seq"}, // its script makes adapters and loads the model
		{"trl", "trl-sft", "ddp fsdp zero1 zero3", ""},
		{"llamafactory", "llamafactory", "ddp fsdp zero2 zero3", ""},
		{"axolotl", "axolotl", "ddp fsdp zero2", ""},
		{"torchtune", "torchtune", "fsdp", "attention"},
	} {
		for _, strategy := range strings.Fields(c.strategies) {
			for _, method := range methods {
				switch {
				case strings.HasPrefix(strategy, "zero") && strings.Contains(method, "quantize"):
					continue // emit refuses it
				case strings.Contains(method, "lora") && strings.Contains(c.outside, "lora"):
					continue
				case c.engine == "axolotl" && strategy != "ddp" && (strings.Contains(method, "lora") || strings.Contains(method, "8bit")):
					continue // devmap counts no adapters there, and axolotl refuses the optimizer
				}
				if c.engine == "torchtune" { // its recipe names them
					method = strings.ReplaceAll(method, "all-linear", "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj")
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
					first, second := planFile(t, plan), planFile(t, again)
					second.Workload.DeepSpeed = nil // the file names the settings that were defaults
					if !reflect.DeepEqual(first.Workload, second.Workload) || first.Devices[0].Predicted.PeakAllocatedBytes != second.Devices[0].Predicted.PeakAllocatedBytes {
						t.Errorf("the plan of the file has a peak of %d with\n%+v, want %d with\n%+v", second.Devices[0].Predicted.PeakAllocatedBytes, second.Workload, first.Devices[0].Predicted.PeakAllocatedBytes, first.Workload)
					}
				})
			}
		}
	}
}

// TestLigerFile: axolotl's file of a plan with Liger is read as Liger.
func TestLigerFile(t *testing.T) {
	folder := t.TempDir()
	plan, job := filepath.Join(folder, "plan.json"), filepath.Join(folder, "job.yaml")
	devmap(t, 0, strings.Fields("plan qwen2.5-0.5b --gpus 2 --gpu h200-141gb --preset axolotl --liger --batch 2 --seq 512 -o "+plan)...)
	first := planFile(t, plan)
	devmap(t, 0, "emit", plan, "--for", "axolotl", "-o", job)
	devmap(t, 0, strings.Fields("plan qwen2.5-0.5b --gpus 2 --gpu h200-141gb --preset "+job+" -o "+plan)...)
	if second := planFile(t, plan); !reflect.DeepEqual(first.Workload, second.Workload) {
		t.Errorf("read as\n%+v, want\n%+v", second.Workload, first.Workload)
	}
}

// TestHSDPFile: Accelerate's file of a plan for HSDP is read as HSDP, with its groups.
func TestHSDPFile(t *testing.T) {
	folder := t.TempDir()
	plan, job := filepath.Join(folder, "plan.json"), filepath.Join(folder, "job.yaml")
	devmap(t, 0, strings.Fields("plan qwen2.5-0.5b --gpus 8 --gpu h200-141gb --mode train --strategy hsdp --shard-degree 2 --batch 2 --seq 512 -o "+plan)...)
	devmap(t, 0, "emit", plan, "--for", "accelerate-config", "-o", job)
	devmap(t, 0, strings.Fields("plan qwen2.5-0.5b --gpus 8 --gpu h200-141gb --batch 2 --seq 512 --preset "+job+" -o "+plan)...)
	if read := planFile(t, plan).Workload; read.Strategy != "hsdp" || read.ShardDegree != 2 {
		t.Errorf("%s over %d GPUs", read.Strategy, read.ShardDegree)
	}
}

// TestJobKeys: settings with keys of their own read back from the file.
func TestJobKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ engine, flags string }{
		{"accelerate-config", "--preset transformers --strategy fsdp --precision bf16-mixed --float8 tensorwise"},
		{"accelerate-config", "--preset transformers --strategy fsdp --precision bf16-mixed --float8 tensorwise-gathered"},
		{"axolotl", "--preset axolotl --strategy fsdp --float8 tensorwise-gathered"},
		{"axolotl", "--preset axolotl --strategy ddp --float8 rowwise"},
		{"axolotl", "--preset axolotl --strategy ddp --eval-batch 4"},
		{"axolotl", "--preset axolotl --strategy ddp --loss fused"},
		{"axolotl", "--preset axolotl --strategy fsdp --shard-degree 2"},
		{"llamafactory", "--preset llamafactory --strategy ddp --eval-batch 4"},
	} {
		t.Run(c.engine+" "+c.flags, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			plan, job, again := filepath.Join(folder, "plan.json"), filepath.Join(folder, "job.yaml"), filepath.Join(folder, "again.json")
			same := "plan qwen2.5-0.5b --gpus 4 --gpu h200-141gb --batch 2 --seq 512 -o "
			devmap(t, 0, strings.Fields(same+plan+" "+c.flags)...)
			devmap(t, 0, "emit", plan, "--for", c.engine, "-o", job)
			devmap(t, 0, strings.Fields(same+again+" --preset "+job)...)
			if first, second := planFile(t, plan), planFile(t, again); !reflect.DeepEqual(first.Workload, second.Workload) {
				t.Errorf("the plan of the file is of\n%+v, want\n%+v", second.Workload, first.Workload)
			}
		})
	}
}

// TestScheduleOfJob: the schedule in torchtitan's folder has no faults, and each stage has its
// modules.
func TestScheduleOfJob(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "job")
	devmap(t, 0, strings.Fields("plan llama-3.1-8b --gpus 2 --gpu h200-141gb --mode train --strategy pipeline --schedule interleaved --batch 4 --micro-batches 4 --seq 512 --precision bf16-true --emit slurm -o "+folder)...)
	plan := planFile(t, filepath.Join(folder, "plan.json"))
	text := fixtures.Must(os.ReadFile(filepath.Join(folder, "schedule.csv")))(t)
	if _, err := torchcsv.Read("schedule.csv", text, []int{0, 1, 0, 1}, plan.Workload.MicroBatches, true); err != nil {
		t.Error(err)
	}
	broken := strings.Replace(string(text), "0F0", "0B0", 1)
	if _, err := torchcsv.Read("schedule.csv", []byte(broken), []int{0, 1, 0, 1}, plan.Workload.MicroBatches, true); err == nil {
		t.Error("a broken schedule is sound")
	}
	module := fixtures.Must(os.ReadFile(filepath.Join(folder, "devmap_plan.py")))(t)
	for name, times := range map[string]int{`"tok_embeddings"`: 1, `"layers.0"`: 1, `"layers.31"`: 1, `"norm", "lm_head"`: 1, "\n                [": 4} {
		if got := strings.Count(string(module), name); got != times {
			t.Errorf("%s is there %d times, want %d:\n%s", name, got, times, module)
		}
	}
}

func planFile(t *testing.T, file string) *devicemap.Plan {
	t.Helper()
	plan := fixtures.Must(devicemap.ReadPlan(file))(t)
	return plan
}

// TestSparesWhatIsRead: --force replaces no file that the command reads, whichever flag names it.
func TestSparesWhatIsRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ds.json", `{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1}`)
	write("len.txt", "100\n200\n")
	write("rank-00000.json", `{"format_version": "devmap.rank/v1", "rank": 0, "world": 1, "devices": []}`)
	small := "qwen2.5-0.5b --gpus 2 --gpu h200-141gb --batch 1 --seq 64 --mode train "
	devmap(t, 0, strings.Fields("plan "+small+"--strategy ddp --preset transformers --emit slurm -o "+folder)...)
	devmap(t, 0, strings.Fields("plan "+small+"--strategy ddp --preset trl-sft -o "+at("sft.yaml"))...)
	for _, args := range []string{
		"plan " + small + "--ds-config DIR/ds.json -o DIR/ds.json", "estimate " + small + "--ds-config DIR/ds.json -o DIR/ds.json",
		"plan " + small + "--preset DIR/training_args.yaml -o DIR/training_args.yaml", "plan " + small + "--lengths DIR/len.txt -o DIR/len.txt",
		"plan " + small + "--preset DIR/training_args.yaml --emit slurm -o DIR", "emit DIR/sft.yaml --for trl -o DIR/", "watch --merge DIR -o DIR/rank-00000.json",
	} {
		var errs bytes.Buffer
		if got := run(t.Context(), strings.Fields(strings.ReplaceAll(args, "DIR", folder)+" --force"), io.Discard, &errs); got != 2 || !strings.Contains(errs.String(), "which is read: name another file") {
			t.Errorf("devmap %s: exit status %d\n%s", args, got, &errs)
		}
	}
}
