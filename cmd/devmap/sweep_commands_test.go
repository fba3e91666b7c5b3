package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// setting is a flag with its value; "" is a switch that is on.
type setting struct{ name, value string }

// words returns the flags as typed.
func words(flags []setting) []string {
	var out []string
	for _, f := range flags {
		switch f.value {
		case "":
			out = append(out, "--"+f.name)
		case "false":
			out = append(out, "--"+f.name+"=false")
		default:
			out = append(out, "--"+f.name, f.value)
		}
	}
	return out
}

// sweptModel is a built-in model, read once.
type sweptModel struct {
	name   string
	graph  *modelgraph.Graph
	params float64 // GiB
}

// sweptModels returns all built-in models, the smallest first.
func sweptModels(t *testing.T) []sweptModel {
	t.Helper()
	entries := fixtures.Must(os.ReadDir(filepath.Join("..", "..", "fixtures", "models")))(t)
	var out []sweptModel
	for _, e := range entries {
		if _, err := fixtures.Models().Open(e.Name() + "/config.json"); err != nil {
			continue // a pipeline, or the table of hub names
		}
		g := fixtures.Must(ask.ReadModel(e.Name()))(t)
		m := sweptModel{name: e.Name(), graph: g}
		for i := range g.Layers {
			for j := range g.Layers[i].Params {
				m.params += float64(g.Layers[i].Params[j].Bytes) / (1 << 30)
			}
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b sweptModel) int { return int(a.params - b.params) })
	return out
}

// drawing is a random command under construction.
type drawing struct {
	*rand.Rand
	model sweptModel
	gpus  int
	dir   string
	flags []setting
}

func (d *drawing) chance(p float64) bool { return d.Float64() < p }

func (d *drawing) add(name, value string) { d.flags = append(d.flags, setting{name, value}) }

// one sets a flag to one of some values with probability p, and returns the value.
func (d *drawing) one(p float64, name string, values ...string) string {
	if !d.chance(p) {
		return ""
	}
	v := values[d.IntN(len(values))]
	d.add(name, v)
	return v
}

// randomCommand returns the model and flags of a random command of `devmap plan`.
func randomCommand(r *rand.Rand, models []sweptModel, dir string) *drawing {
	d := &drawing{Rand: r, dir: dir}
	d.model = models[min(r.IntN(len(models)), r.IntN(len(models)))] // small ones more often
	d.devices()
	mode := d.one(0.8, "mode", "train", "train", "train", "infer", "load")
	d.spread(mode)
	d.sizes(mode)
	d.numerics(mode)
	d.placement(mode)
	return d
}

// devices draws a number of GPUs, sizes near the model's need, or a file.
func (d *drawing) devices() {
	d.gpus = 1 + d.IntN(4)
	if d.chance(0.3) {
		d.gpus = 1 + d.IntN(16)
	}
	names := catalogue.Names()
	// From less than the weights divided by the GPUs to more than a training needs.
	size := func() string {
		return fmt.Sprintf("%.1fGiB", 0.9+d.model.params/float64(d.gpus)*(0.5+9*d.Float64()*d.Float64()))
	}
	switch kind := d.Float64(); {
	case kind < 0.45:
		d.add("gpus", strconv.Itoa(d.gpus))
		d.one(0.7, "gpu", names...)
	case kind < 0.9:
		sizes := slices.Repeat([]string{size()}, d.gpus)
		for i := range sizes {
			if d.chance(0.3) {
				sizes[i] = size()
			}
		}
		d.add("gpus", strings.Join(sizes, ","))
		d.one(0.3, "gpu", names...)
	default:
		d.add("topology", d.topology(names))
	}
	if d.chance(0.1) {
		d.add("reserve", "500MiB")
	} else if d.chance(0.05) {
		d.add("reserve", strings.TrimSuffix(strings.Repeat("1GiB,", d.gpus-1)+"2GiB", ","))
	}
}

// topology writes a file of devices from the catalogue. Some have other sizes, hosts or links.
func (d *drawing) topology(names []string) string {
	type device map[string]any
	var devices []device
	name := names[d.IntN(len(names))]
	own, hosts := d.chance(0.4), d.chance(0.3)
	for i := range d.gpus {
		if d.chance(0.2) {
			name = names[d.IntN(len(names))]
		}
		v := device{"name": name}
		if own {
			v["capacity_bytes"] = int64((0.9 + d.model.params/float64(d.gpus)*8*d.Float64()) * (1 << 30))
		}
		if hosts {
			v["host"] = fmt.Sprintf("host-%d", i*2/d.gpus)
		}
		devices = append(devices, v)
	}
	doc := map[string]any{"format_version": "devmap.topology/v1", "devices": devices}
	if d.chance(0.3) {
		doc["host_memory_bytes"] = int64(d.model.params * (1 << 30) * d.Float64())
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err) // it was made above
	}
	file := filepath.Join(d.dir, fmt.Sprintf("topology-%08x.json", d.Uint32()))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		panic(err)
	}
	return file
}
