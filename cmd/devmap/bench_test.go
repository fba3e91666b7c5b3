//go:build unix

package main_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// BenchmarkPlan405B plans llama-3.1-405b on 8 GPUs from its config alone, as a
// whole process: start, plan, table and JSON, exit. The goal is 50 ms and
// 64 MiB; of-50ms and of-64MiB are the parts of it used. The peak is the worst
// run's, and at most that: some kernels count what the parent held at the fork.
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

// peakMiB is the largest resident size: KiB on Linux, bytes on macOS.
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
