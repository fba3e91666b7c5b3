package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// runs is the number of processes in the median, after one that does not count.
const runs = 9

// measured is devmap's result for a job.
type measured struct {
	gib float64 // peak of the largest GPU
	ms  float64 // median of whole processes
}

// plan is the part of devmap.plan/v1 that peers needs.
type plan struct {
	Objective struct {
		Status string `json:"status"`
	} `json:"objective"`
	Devices []struct {
		Predicted struct {
			PeakAllocatedBytes float64 `json:"peak_allocated_bytes"`
		} `json:"predicted"`
	} `json:"devices"`
}

func measure(binary string, j job) (measured, error) {
	var m measured
	times := make([]time.Duration, 0, runs)
	config, err := plainConfig(filepath.Dir(binary), j.model)
	if err != nil {
		return m, err
	}
	for i := range runs + 1 {
		var stdout, stderr bytes.Buffer
		gpus := strings.Repeat("1TiB,", j.gpus-1) + "1TiB"
		cmd := exec.Command(binary, "plan", config, "--mode", "load", "--gpus", gpus) //nolint:gosec // built above
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		begin := time.Now()
		err := cmd.Run()
		if i > 0 {
			times = append(times, time.Since(begin))
		}
		if err != nil {
			return m, fmt.Errorf("planning %q: %w: %s", j.model, err, &stderr)
		}
		if m.gib, err = largest(stdout.Bytes()); err != nil {
			return m, fmt.Errorf("planning %q: %w", j.model, err)
		}
	}
	slices.Sort(times)
	m.ms = times[runs/2].Seconds() * 1e3
	return m, nil
}

// largest returns the peak of the largest GPU of a plan in GiB. A plan without proof is an error.
func largest(data []byte) (float64, error) {
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		return 0, err
	}
	if p.Objective.Status != "optimal" {
		return 0, fmt.Errorf("the plan is %q, not optimal", p.Objective.Status)
	}
	var most float64
	for i := range p.Devices {
		most = max(most, p.Devices[i].Predicted.PeakAllocatedBytes)
	}
	return most / (1 << 30), nil
}

// plainConfig writes a built-in config into dir without its quantization: the peers plan the model
// in bf16.
func plainConfig(dir, model string) (string, error) {
	data, err := os.ReadFile("fixtures/models/" + model + "/config.json")
	if err != nil {
		return "", err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", fmt.Errorf("parsing the config of %q: %w", model, err)
	}
	delete(fields, "quantization_config")
	if data, err = json.Marshal(fields); err != nil {
		return "", err
	}
	file := filepath.Join(dir, model+".json")
	return file, os.WriteFile(file, data, 0o600)
}
