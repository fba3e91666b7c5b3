//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPlan405B plans llama-3.1-405b on 8 GPUs from its config alone, as a whole process:
// start, plan, table and JSON, exit. The goal is 50 ms and 64 MiB; of-50ms and of-64MiB are the
// used parts. The peak is the largest of all runs. It is an upper bound, as some kernels count the
// parent's memory at the fork.
func BenchmarkPlan405B(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "devmap")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("building devmap: %v\n%s", err, out)
	}
	config := filepath.Join("..", "..", "fixtures", "models", "llama-3.1-405b", "config.json")
	gpus := strings.TrimSuffix(strings.Repeat("1TiB,", 8), ",")
	for _, mode := range []string{"load", "infer", "train"} {
		b.Run(mode, func(b *testing.B) {
			var peak float64
			for b.Loop() {
				var stderr strings.Builder
				cmd := exec.Command(binary, "plan", config, "--gpus", gpus, "--mode", mode)
				cmd.Stderr = &stderr
				if err := cmd.Run(); err != nil {
					b.Fatalf("%v\n%s", err, &stderr)
				}
				peak = max(peak, peakMiB(b, cmd.ProcessState.SysUsage()))
			}
			ms := b.Elapsed().Seconds() * 1e3 / float64(b.N)
			b.ReportMetric(ms, "ms/op")
			b.ReportMetric(ms/50, "of-50ms")
			b.ReportMetric(peak, "peak-MiB")
			b.ReportMetric(peak/64, "of-64MiB")
		})
	}
}

// peakMiB returns the largest resident size; the system gives KiB on Linux and bytes on macOS.
func peakMiB(b *testing.B, usage any) float64 {
	b.Helper()
	u, ok := usage.(*syscall.Rusage)
	if !ok {
		b.Fatalf("usage is a %T", usage)
	}
	if runtime.GOOS == "darwin" {
		return float64(u.Maxrss) / (1 << 20)
	}
	return float64(u.Maxrss) / (1 << 10)
}

// BenchmarkDegrees chooses Megatron's degrees for clusters of 8 H100 per host, as a whole process.
// The goal is 2 s. cpu-s is the process's time on all cores, which does not depend on the load.
// gap-% is the distance of the plan to its bound.
func BenchmarkDegrees(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "devmap")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("building devmap: %v\n%s", err, out)
	}
	for _, model := range []string{"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b --recompute full", "mixtral-8x7b --ep auto"} {
		for _, gpus := range []int{64, 256, 1024} {
			for _, objective := range []string{"memory", "time"} {
				b.Run(fmt.Sprintf("%s/%d/%s", strings.Fields(model)[0], gpus, objective), func(b *testing.B) {
					args := strings.Fields("plan " + model + " --gpu h100-80gb --mode train --runtime megatron --tp auto --pp auto --dp auto --cp auto --sequence-parallel --micro-batches 16 --seq 4096 --json --objective " + objective)
					args = append(args, "--gpus", fmt.Sprint(gpus), "--nodes", fmt.Sprint(gpus/8), "--batch", fmt.Sprint(2*gpus))
					var cpu time.Duration
					var plan struct{ Objective struct{ Gap float64 } }
					for b.Loop() {
						cmd := exec.Command(binary, args...)
						text, err := cmd.Output()
						if err != nil || json.Unmarshal(text, &plan) != nil {
							b.Skip("nothing fits")
						}
						cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
					}
					b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
					b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
					b.ReportMetric(100*plan.Objective.Gap, "gap-%")
				})
			}
		}
	}
}
