package ask

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestPresetTables: every default is a value of a field, has a source, and is of
// a preset of the cost model; so is what every key of a file sets.
func TestPresetTables(t *testing.T) {
	fields := costmodel.Fields()
	names := flagNamed("preset").field.Values
	check := func(where string, set presetSet) {
		t.Helper()
		if set.Field == "offload" { // a flag of the search
			return
		}
		i := slices.IndexFunc(fields, func(field costmodel.Field) bool { return field.Name == set.Field })
		if i < 0 {
			t.Errorf("%s: the field %q", where, set.Field)
			return
		}
		if set.Value != "*" && fields[i].Values != nil && !slices.Contains(fields[i].Values, set.Value) {
			t.Errorf("%s: %s %q is none of %v", where, set.Field, set.Value, fields[i].Values)
		}
		for _, strategy := range set.Under {
			if costmodel.Strategy(strategy).Traits().Open {
				t.Errorf("%s: the strategy %q", where, strategy)
			}
		}
		if set.When != "" && set.When != "lora" && set.When != "full" {
			t.Errorf("%s: %q", where, set.When)
		}
	}
	for _, preset := range presets() {
		if !slices.Contains(names, preset.Name) || preset.Program == "" {
			t.Errorf("preset %q of %q", preset.Name, preset.Program)
		}
		for _, set := range preset.Sets {
			check(preset.Name, set)
			if set.Source == "" {
				t.Errorf("%s: %s has no source", preset.Name, set.Field)
			}
		}
	}
	for _, file := range files()[1:] {
		if !slices.Contains(names, file.Preset) || len(file.Marks) == 0 {
			t.Errorf("a file of %q", file.Preset)
		}
		for key, values := range file.Keys {
			for value, sets := range values {
				for _, set := range sets {
					check(file.Preset+" "+key+" "+value, set)
				}
			}
		}
	}
}

// FuzzTrainerFile: any file is read or refused, and what it sets is a workload.
func FuzzTrainerFile(f *testing.F) {
	for _, text := range []string{
		"finetuning_type: lora\nlora_rank: 16\nbf16: true\n", "base_model: a\nfsdp_version: 2\nadapter: null\n",
		"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n", `{"output_dir": "o", "gradient_accumulation_steps": 4}`,
		"a: &x [1]\nb: *x\n", "output_dir: [a, [b]]\n? {}\n: 1\n", "tuner_type: full\n<<: {max_length: 1}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		workload := costmodel.Workload{Preset: path, Batch: 1, MicroBatches: 1}
		notes, err := applyPreset(&workload, func(string) bool { return false })
		switch {
		case err != nil && err.Error() == "":
			t.Error("an error without words")
		case err == nil && strings.ContainsAny(workload.Preset, "/.\\"):
			t.Errorf("%q is still a file: %q", workload.Preset, notes)
		}
		for _, note := range notes {
			if strings.ContainsAny(note, "\x00\x1b\n") {
				t.Errorf("%q is printed as it came", note)
			}
		}
	})
}
