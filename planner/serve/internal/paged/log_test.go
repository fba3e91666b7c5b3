package paged

import (
	"errors"
	"strings"
	"testing"
)

const startup = `(Worker_PP0 pid=1) INFO 11-30 gpu_model_runner.py:4100] Model loading took 7.51 GiB memory and 3.1 seconds
(Worker_PP1 pid=2) INFO 11-30 gpu_model_runner.py:4100] Model loading took 7.53 GiB memory and 3.1 seconds
(Worker_PP0 pid=1) DEBUG Memory profiling takes 3.20 seconds. Total non KV cache memory: 9.9GiB; torch peak memory increase: 1.89GiB; weights memory: 7.51GiB.
(Worker_PP0 pid=1) INFO Available KV cache memory: 66.55 GiB
(Worker_PP1 pid=2) INFO Available KV cache memory: 64.12 GiB
(EngineCore pid=9) INFO GPU KV cache size: 1,050,528 tokens
(EngineCore pid=9) INFO Maximum concurrency for 131,072 tokens per request: 8.01x
(Worker_PP0 pid=1) INFO Graph capturing finished in 9 secs, took 0.91 GiB
`

func TestReadLog(t *testing.T) {
	log, err := ReadLog(strings.NewReader(startup))
	if err != nil {
		t.Fatal(err)
	}
	const hundredth = (1 << 30) / 100
	for name, pair := range map[string][2]int64{
		"weights": {log.Weights / hundredth, 753}, "activation": {log.Activation / hundredth, 189}, "cache": {log.Cache / hundredth, 6412},
		"graphs": {log.Graphs / hundredth, 91}, "estimate": {log.Estimate, -1}, "tokens": {log.Tokens, 1050528}, "context": {log.Context, 131072},
	} {
		if diff := pair[0] - pair[1]; diff < -1 || diff > 1 {
			t.Errorf("%s: %d, want %d", name, pair[0], pair[1])
		}
	}
	if _, err := ReadLog(strings.NewReader("a log of a web server\n")); !errors.Is(err, ErrNoLog) {
		t.Errorf("another log: %v", err)
	}
}

func FuzzReadLog(f *testing.F) {
	f.Add(startup)
	f.Add("max_total_num_tokens=99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		if log, err := ReadLog(strings.NewReader(text)); err == nil && (log.Weights > 1<<50 || log.Tokens > 1<<50) {
			t.Errorf("%+v", log)
		}
	})
}

// TestLogOf: a log says which engine wrote it, and a negative size is an error.
func TestLogOf(t *testing.T) {
	for line, engine := range map[string]string{"Model loading took 1.5 GiB": "vllm", "max_total_num_tokens=7": "sglang", "torch peak memory increase: 1 GiB": ""} {
		if log, err := ReadLog(strings.NewReader(line)); err != nil || log.Engine != engine {
			t.Errorf("%s: %+v, %v", line, log, err)
		}
	}
	if _, err := ReadLog(strings.NewReader("Available KV cache memory: -3.2 GiB")); err == nil {
		t.Error("a negative size is read")
	}
}
