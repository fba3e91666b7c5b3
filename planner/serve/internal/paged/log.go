package paged

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Log is what the start-up log of an engine says: the most of all ranks, in bytes, and the least cache.
// A figure that the log lacks is negative.
type Log struct {
	Weights    int64
	Activation int64 // the peak of a pass
	Graphs     int64 // CUDA graphs after their capture
	Estimate   int64 // CUDA graphs as the engine estimated them
	Cache      int64
	Tokens     int64 // in the cache, of one replica
	Context    int64 // tokens of a sequence
	// Engine is who wrote it: "vllm", "sglang", or "" if no line says so.
	Engine string
}

// figure is a line of a log. Sizes are in GiB.
type figure struct {
	line  *regexp.Regexp
	at    func(log *Log) *int64
	size  bool // in GiB; else a number
	least bool // of all ranks
	of    string
}

const gibibytes = `(-?\d+(?:\.\d+)?) ?Gi?B`

// figures are lines of vLLM 0.19 to 0.33 (v1/worker/gpu_worker.py, gpu/model_runner.py,
// v1/core/kv_cache_utils.py) and of SGLang 0.5.
var figures = []figure{
	{line: regexp.MustCompile(`Model loading took ` + gibibytes), at: func(log *Log) *int64 { return &log.Weights }, size: true, of: "vllm"},
	{line: regexp.MustCompile(`Load weight end\..* mem usage=` + gibibytes), at: func(log *Log) *int64 { return &log.Weights }, size: true, of: "sglang"},
	{line: regexp.MustCompile(`torch peak memory increase: ` + gibibytes), at: func(log *Log) *int64 { return &log.Activation }, size: true},
	{line: regexp.MustCompile(`Graph capturing finished in .* took ` + gibibytes), at: func(log *Log) *int64 { return &log.Graphs }, size: true},
	{line: regexp.MustCompile(`Estimated CUDA graph memory: ` + gibibytes), at: func(log *Log) *int64 { return &log.Estimate }, size: true},
	{line: regexp.MustCompile(`Available KV cache memory: ` + gibibytes), at: func(log *Log) *int64 { return &log.Cache }, size: true, least: true, of: "vllm"},
	{line: regexp.MustCompile(`KV cache size: ([0-9,]+) tokens`), at: func(log *Log) *int64 { return &log.Tokens }, least: true, of: "vllm"},
	{line: regexp.MustCompile(`max_total_num_tokens=(\d+)`), at: func(log *Log) *int64 { return &log.Tokens }, least: true, of: "sglang"},
	{line: regexp.MustCompile(`Maximum concurrency for ([0-9,]+) tokens`), at: func(log *Log) *int64 { return &log.Context }, least: true},
	{line: regexp.MustCompile(`context_len=(\d+)`), at: func(log *Log) *int64 { return &log.Context }, least: true},
}

// ErrNoLog is a text without any figure of a start-up.
var ErrNoLog = errors.New("no line is from the start of vLLM or SGLang")

// ReadLog reads a start-up log. A line of more than a MiB ends it.
func ReadLog(from io.Reader) (*Log, error) {
	const longest = 1 << 20
	log := &Log{-1, -1, -1, -1, -1, -1, -1, ""}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longest)
	found := false
	for lines.Scan() {
		for i := range figures {
			figure := &figures[i]
			match := figure.line.FindSubmatch(lines.Bytes())
			if match == nil {
				continue
			}
			value, err := figure.value(string(match[1]))
			if err != nil {
				return nil, err
			}
			found = true
			if figure.of != "" {
				log.Engine = figure.of
			}
			if at := figure.at(log); *at < 0 || (value < *at) == figure.least {
				*at = value
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if !found {
		return nil, ErrNoLog
	}
	return log, nil
}

func (figure *figure) value(text string) (int64, error) {
	const gib, most = 1 << 30, 1 << 50
	number, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if figure.size {
		number *= gib
	}
	if err != nil || !(number >= 0 && number <= most) {
		return 0, fmt.Errorf("%q is no size or number of tokens", text)
	}
	return int64(number), nil
}
