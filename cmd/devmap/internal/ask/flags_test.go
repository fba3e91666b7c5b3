package ask

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// another lists for each flag of a workload a value other than its default.
var another = map[string]string{
	"preset": "transformers", "built-on": "cpu",
	"mode": "train", "batch": "3", "micro-batches": "3", "seq": "7", "target-seq": "5", "new-tokens": "2",
	"images": "1", "image-size": "448", "max-pixels": "802816", "packing": "wrapped", "label-tokens": "0.25", "precision": "32-true", "optimizer": "sgd", "recompute": "full", "offload-activations": "full",
	"strategy": "hsdp", "runtime": "lightning", "schedule": "gpipe", "virtual-stages": "3", "dp": "2", "tp": "4", "cp": "2", "ep": "2", "pp": "2", "sequence-parallel": "true", "expert-capacity": "2", "uniform": "true", "shard-degree": "2", "mem-fraction": "0.5",
	"lora-rank": "4", "lora-targets": "q_proj,v_proj", "lora-precision": "bf16", "lora-dropout": "true", "quantize": "nf4", "float8": "rowwise",
	"optimizer-in-backward": "true", "liger": "true", "compile": "true", "eval-batch": "4", "eval-samples": "64",
	"loss": "fused", "attention": "eager", "kernels": "package", "loss-only": "true", "gradient-as-bucket-view": "true", "ema": "true",
}

// parsed returns a command's request for the words of a command line.
func parsed(t *testing.T, command string, words ...string) *Request {
	t.Helper()
	cmd := &cobra.Command{Use: command}
	r := New(cmd)
	if err := cmd.ParseFlags(words); err != nil || cmd.Flags().NArg() > 0 {
		t.Fatalf("%q: %v", words, err)
	}
	return r
}

// workloadFlagNames returns the names of the flags that set a field of a workload.
func workloadFlagNames() []string {
	var names []string
	for i := range flags {
		if flags[i].field != nil {
			names = append(names, flags[i].name)
		}
	}
	return names
}

// TestFlagsReproduce: every flag that sets a field of a workload is among the flags that reproduce
// a row, and reads back as the same workload.
func TestFlagsReproduce(t *testing.T) {
	for _, name := range workloadFlagNames() {
		given := parsed(t, "plan", "--"+name+"="+another[name])
		w, err := given.Workload()
		if err != nil {
			t.Fatal(err)
		}
		words := Flags(&w)
		if !slices.ContainsFunc(words, func(word string) bool { return word == "--"+name || strings.HasPrefix(word, "--"+name+"=") }) {
			t.Errorf("--%s %s is lost: %q", name, another[name], words)
		}
		again := parsed(t, "plan", words...)
		if !reflect.DeepEqual(again.work, w) {
			t.Errorf("--%s %s reads back as %+v, not %+v", name, another[name], again.work, w)
		}
	}
}

// TestFlagsAgain: every other flag of estimate is printed as it was given.
func TestFlagsAgain(t *testing.T) {
	for i := range flags {
		name := flags[i].name
		if flags[i].field != nil || flags[i].on&onEstimate == 0 || flags[i].hidden&onEstimate != 0 {
			continue
		}
		// These are for one row alone, refused, or about the output and the time.
		if slices.Contains([]string{"contiguous", "offload", "json", "output", "time-limit", "tensor-split", "gpu-layers", "host-experts", "enforce-eager"}, name) {
			continue
		}
		if words := parsed(t, "estimate", "--"+name, "1").Again(); !slices.Equal(words, []string{"--" + name, "1"}) {
			t.Errorf("--%s is lost: %q", name, words)
		}
	}
}

// follow lists the flags that are open again if another flag is given over a plan. --target-seq is
// equal to --seq, and settings for adapters depend on the engine.
var follow = map[string][]string{
	"seq": {"target-seq"}, "runtime": {"lora-precision", "mem-fraction"}, "schedule": {"virtual-stages"},
	"strategy": {"runtime", "lora-precision", "schedule", "virtual-stages", "dp", "tp", "cp", "ep", "pp", "sequence-parallel", "expert-capacity", "uniform", "shard-degree", "mem-fraction"},
}

// TestOver: a flag that is given over a plan sets its field, opens the flags that follow, and keeps
// the plan's other values.
func TestOver(t *testing.T) {
	names := workloadFlagNames()
	var all []string
	for _, name := range names {
		all = append(all, "--"+name+"="+another[name])
	}
	planned := parsed(t, "plan", all...).work
	for _, name := range names {
		r := parsed(t, "check", "--"+name+"="+flagNamed(name).unlike())
		w, _, err := r.Setting(&devicemap.Plan{Workload: planned, Topology: costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 1}}}}, nil)
		if err != nil {
			t.Fatalf("--%s: %v", name, err)
		}
		for _, other := range names {
			f := flagNamed(other).field
			want := f.Text(&planned)
			switch {
			case other == name:
				want = f.Text(&r.work)
			case slices.Contains(follow[name], other):
				want = ""
			}
			if got := f.Text(&w); got != want {
				t.Errorf("--%s over a plan: %s is %q, not %q", name, other, got, want)
			}
		}
	}
	both := parsed(t, "check", "--lora-precision", "fp32", "--strategy", "fsdp", "--target-seq", "9", "--seq", "8")
	if w := both.over(planned); w.LoRAPrecision != "fp32" || w.TargetSeq != 9 || w.Seq != 8 || w.Runtime != "" {
		t.Errorf("given together: %+v", w)
	}
}

// unlike returns a value that differs from the one in [another].
func (f *flag) unlike() string {
	switch f.field.Ref(new(costmodel.Workload)).(type) {
	case *int64:
		return "1"
	case *float64:
		return "0.25"
	case *[]string:
		return "gate_proj"
	case *bool:
		return "false"
	case *costmodel.Degree:
		return "auto"
	}
	return f.values[slices.IndexFunc(f.values, func(v string) bool { return v != another[f.name] })]
}

// TestTable: every field of a workload has a flag, all names differ, and flags refer only to flags
// that exist.
func TestTable(t *testing.T) {
	seen := map[string]string{}
	claim := func(name, by string) {
		if before, ok := seen[name]; ok {
			t.Errorf("--%s is %s and %s", name, before, by)
		}
		seen[name] = by
	}
	for i := range flags {
		f := &flags[i]
		claim(f.name, "a flag")
		for _, also := range f.also {
			if other := flagNamed(also); other != nil && other.on&f.on&^f.hidden == 0 {
				continue // one command has only one of the flags, or shows only the other
			}
			claim(also, "meant for "+f.name)
		}
		if f.help == "" && f.helpOn == nil {
			t.Errorf("--%s has no help", f.name)
		}
		for _, other := range f.reopens {
			if flagNamed(other) == nil || flagNamed(other).field == nil {
				t.Errorf("--%s reopens %q, which is no flag of a workload", f.name, other)
			}
		}
		for value, meant := range f.meant {
			if !everyIn(meant, f.values) || slices.Contains(f.values, value) {
				t.Errorf("--%s %s is meant for %q, of %q", f.name, value, meant, f.values)
			}
		}
	}
	for field := range ofWorkload {
		if !slices.ContainsFunc(costmodel.Fields(), func(f costmodel.Field) bool { return f.Name == field }) {
			t.Errorf("a workload has no %s", field)
		}
	}
	for _, f := range costmodel.Fields() {
		if _, ok := ofWorkload[f.Name]; !ok {
			t.Errorf("no flag sets %s", f.Name)
		}
	}
}

// TestAdd: a command has exactly its flags of the table with their defaults. All named values of a
// flag are accepted.
func TestAdd(t *testing.T) {
	for command, which := range commands {
		cmd := &cobra.Command{Use: command}
		New(cmd)
		for i := range flags {
			f := &flags[i]
			set := cmd.Flags().Lookup(f.name)
			if (set != nil) != (f.on&which != 0) {
				t.Errorf("%s: --%s is there: %v", command, f.name, set != nil)
				continue
			}
			if set == nil {
				continue
			}
			if set.Hidden != (f.hidden&which != 0) || strings.Contains(set.Usage, "{") || set.Usage == "" {
				t.Errorf("%s: --%s: hidden %v, help %q", command, f.name, set.Hidden, set.Usage)
			}
			if f.defaultValue != "" && !strings.HasPrefix(set.DefValue, strings.TrimSuffix(f.defaultValue, "0s")) {
				t.Errorf("%s: --%s is %q by default, not %q", command, f.name, set.DefValue, f.defaultValue)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if flagNamed(f.Name) == nil {
				t.Errorf("%s: --%s is not in the table", command, f.Name)
			}
		})
	}
}
