package costmodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/modelgraph"
)

// ApplyPreset sets what the preset's program does by default and given, by the
// name of a field, does not report; it returns the settings made. A preset that
// contradicts the workload, or whose memory devmap does not count, is a
// [*FieldError].
func (workload *Workload) ApplyPreset(given func(field string) bool) ([]Setting, error) {
	preset := trainer.Of(workload.Preset)
	if !slices.Contains(trainer.Names(), preset.Name) || workload.Preset == "" {
		return nil, nil
	}
	var made []Setting
	for _, set := range preset.Sets {
		if given(set.Field) || !workload.has(&set) {
			continue
		}
		i := slices.IndexFunc(fields, func(field Field) bool { return field.Name == set.Field })
		fields[i].parse(workload, set.Value)
		made = append(made, Setting{set.Field, set.Value})
	}
	return made, workload.CheckPreset()
}

// ReadPreset takes the settings of a training program's own configuration file
// from its text, and the program's preset; given reports the fields that stand.
// It returns the settings made and the keys that devmap does not know; errors
// name file.
func (workload *Workload) ReadPreset(file string, text []byte, given func(field string) bool) (made []Setting, unknown []string, err error) {
	read, err := trainer.Read(file, text, func(word string, known []string) string {
		if near := modelgraph.Nearest(word, known, 1, 2); near != nil {
			return near[0]
		}
		return ""
	})
	if err != nil {
		return nil, nil, err
	}
	workload.Preset = read.Preset
	adapted := given("lora_rank")
	for _, set := range read.Sets {
		if given(set.Field) || set.Field == "lora_rank" && adapted || !workload.has(&set) {
			continue
		}
		adapted = adapted || set.Field == "lora_rank" && set.Value == "0" // full training, whatever the rank
		i := slices.IndexFunc(fields, func(field Field) bool { return field.Name == set.Field })
		if err := fields[i].accept(workload, set.Value); err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", file, set.Source, err)
		}
		made = append(made, Setting{set.Field, set.Value})
	}
	if parts := workload.MicroBatches; parts > 1 && !given("micro_batches") && !given("batch") {
		workload.Batch *= parts // the file's is that of a micro-batch
	}
	return made, read.Unknown, nil
}

// accept is [Field.parse] of a text from outside.
func (field *Field) accept(workload *Workload, text string) error {
	if _, ok := field.Ref(workload).(*int64); ok {
		if number, err := strconv.ParseInt(text, 10, 64); err != nil || number < 0 || number > 1<<32 {
			return fmt.Errorf("%q is not a number between 0 and 2^32", text)
		}
	}
	field.parse(workload, text)
	return nil
}

// has reports that a default holds under the workload. Adapters come first in a
// preset's list.
func (workload *Workload) has(set *trainer.Set) bool {
	if strings.HasPrefix(set.Field, "lora_") && set.Field != "lora_rank" && workload.LoRARank == 0 {
		return false
	}
	if len(set.Under) > 0 && !slices.Contains(set.Under, string(workload.Strategy)) {
		return false
	}
	lora := workload.LoRARank > 0
	return set.When == "" || set.When == "lora" && lora || set.When == "full" && !lora
}

// parse gives a field the value of a text of the table of presets.
func (field *Field) parse(workload *Workload, text string) {
	switch at := field.Ref(workload).(type) {
	case *int64:
		*at, _ = strconv.ParseInt(text, 10, 64) // the table has numbers, as its test checks
	case *bool:
		*at = text == "true"
	case *[]string:
		*at = strings.Split(text, ",")
	default:
		field.Set(workload, text)
	}
}

// CheckPreset refuses what the preset's program does not run, and what of it is
// not counted.
func (workload *Workload) CheckPreset() error {
	preset := trainer.Of(workload.Preset)
	name := Set("preset", preset.Name)
	missing := preset.Missing
	if missing == "" && workload.LoRARank > 0 {
		missing = preset.MissingLoRA
	}
	switch traits := workload.Strategy.Traits(); {
	case len(preset.Strategies) == 0 && missing == "":
		return nil
	case missing != "":
		return Refuse(name, "devmap does not count %s yet: plan with %v and the flags of your run", missing, Set("preset", preset.Nearest))
	case workload.Mode != "" && workload.Mode != Train:
		return Refuse(Set("mode", workload.Mode), "%s contradicts %v, which trains: use %v or leave out one of them", workload.Mode, name, Set("mode", Train))
	case !traits.Open && !slices.Contains(preset.Strategies, string(workload.Strategy)):
		return Refuse(Set("strategy", workload.Strategy), "%v does not run %s (it runs %s): use %v", name, workload.Strategy, strings.Join(preset.Strategies, ", "), Set("strategy", preset.Strategies[0]))
	}
	return nil
}

// DefaultStrategy is that of the preset's program; empty: it has none.
func (workload *Workload) DefaultStrategy() Strategy {
	for _, strategy := range trainer.Of(workload.Preset).Strategies {
		return Strategy(strategy)
	}
	return ""
}

// PresetNotes say what the preset's values were read in and assume.
func (workload *Workload) PresetNotes() (program string, notes []string) {
	preset := trainer.Of(workload.Preset)
	return preset.Program, preset.Notes
}
