package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// These types are a plan in which every GPU runs the whole model and holds a part of each
// parameter. It has shards, and no device_map or stages.
type (
	contractSharded struct {
		FormatVersion string              `json:"format_version"`
		Model         contractModel       `json:"model"`
		Workload      json.RawMessage     `json:"workload"`
		Topology      json.RawMessage     `json:"topology"`
		Shards        contractShards      `json:"shards"`
		UnitKinds     map[string][]string `json:"unit_kinds,omitempty"`
		Devices       []contractDevice    `json:"devices"`
		Objective     contractObjective   `json:"objective"`
		Verdict       string              `json:"verdict"`
		Imbalance     float64             `json:"imbalance"`
		StepSeconds   *float64            `json:"step_seconds"`
		Warnings      []string            `json:"warnings"`
	}
	contractShards struct {
		Degree int64               `json:"degree"`
		Units  []contractShardUnit `json:"units"`
		Params []contractShard     `json:"params"`
	}
	contractShardUnit struct {
		Name        string   `json:"name"`
		Params      []string `json:"params"`
		Numel       int64    `json:"numel"`
		PaddedNumel int64    `json:"padded_numel"`
	}
	contractShard struct {
		Name        string  `json:"name"`
		Numel       int64   `json:"numel"`
		PaddedNumel int64   `json:"padded_numel"`
		RankNumel   []int64 `json:"rank_numel"`
	}
)

func TestShardsContract(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		degree int64
	}{
		"fsdp":         {[]string{"qwen2.5-3b", "--gpus", "4", "--gpu", "h200-141gb", "--mode", "train", "--strategy", "fsdp"}, 4},
		"fsdp, infer":  {[]string{"llama-3.1-8b", "--gpus", "3", "--strategy", "fsdp", "--mode", "infer"}, 3},
		"fsdp, load":   {[]string{"gpt2", "--gpus", "2", "--strategy", "fsdp", "--mode", "load"}, 2},
		"hsdp":         {[]string{"gemma-2b", "--gpus", "4", "--gpu", "h200-141gb", "--mode", "train", "--strategy", "hsdp", "--precision", "bf16-mixed"}, 2},
		"shard degree": {[]string{"qwen2.5-3b", "--gpus", "8", "--gpu", "h200-141gb", "--mode", "train", "--strategy", "hsdp", "--shard-degree", "4"}, 4},
		"generation":   {[]string{"qwen2.5-3b", "--gpus", "2", "--strategy", "fsdp", "--new-tokens", "10"}, 2},
		"zero3":        {[]string{"gpt2", "--gpus", "4", "--mode", "train", "--strategy", "zero3"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var p contractSharded
			decode(t, devmap(t, out.ExitDone, append([]string{"plan", "--json"}, c.args...)...), &p)
			checkModel(t, &p.Model, c.args[0])
			checkDevices(t, p.Devices)
			checkShards(t, &p, c.degree)
		})
	}
}

// checkShards checks that every parameter is in exactly one unit, and that the parts add up.
func checkShards(t *testing.T, p *contractSharded, degree int64) {
	t.Helper()
	s := &p.Shards
	var units, params int64
	var inUnits, listed []string
	for _, u := range s.Units {
		units += u.Numel
		inUnits = append(inUnits, u.Params...)
	}
	for _, v := range s.Params {
		var sum int64
		for _, n := range v.RankNumel {
			sum += n
		}
		if int64(len(v.RankNumel)) != degree || sum != v.Numel || v.PaddedNumel < v.Numel || v.PaddedNumel%degree != 0 {
			t.Errorf("%+v", v)
		}
		params += v.Numel
		listed = append(listed, v.Name)
	}
	slices.Sort(inUnits)
	slices.Sort(listed)
	if s.Degree != degree || units != p.Model.Params || params != p.Model.Params || !slices.Equal(inUnits, listed) {
		t.Errorf("degree %d; %d parameters in units, %d listed, the model has %d", s.Degree, units, params, p.Model.Params)
	}
}

// TestShardedRefusals: settings that FSDP2 does not accept.
func TestShardedRefusals(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--strategy fsdp --shard-degree 3", "3 does not divide the 4 GPUs (2 and 4 do)"},
		{"--strategy hsdp --shard-degree -1", "shard-degree"},
		{"--strategy fsdp --quantize int8", "use --strategy ddp or device-map"},
	} {
		var document, errs strings.Builder
		args := append([]string{"plan", "qwen2.5-3b", "--gpus", "4"}, strings.Fields(c.flags)...)
		if got := run(t.Context(), args, &document, &errs); got != out.ExitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: exit status %d, %q, want %q", c.flags, got, errs.String(), c.want)
		}
	}
}
