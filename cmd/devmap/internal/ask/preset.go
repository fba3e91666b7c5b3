package ask

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/emit"
)

//go:embed trainer_defaults.json
var trainerDefaults []byte

// preset is the defaults of a training program.
type preset struct {
	Name, Program string // Program: packages and versions of the defaults
	Sets          []presetSet
	Like          string // an earlier preset whose defaults it has
	Notes         []presetNote
}

// presetNote is a note on a preset, with its conditions.
type presetNote struct {
	Text   string
	When   string // lora or full
	Under  string // a strategy
	Unless string // the note is outdated if this field was set otherwise
}

// UnmarshalJSON reads an unconditional note as a text.
func (note *presetNote) UnmarshalJSON(text []byte) error {
	type object presetNote
	if text[0] == '"' {
		return json.Unmarshal(text, &note.Text)
	}
	return json.Unmarshal(text, (*object)(note))
}

// notesFor returns the texts of the notes that apply to a workload.
func (preset *preset) notesFor(workload *costmodel.Workload, given func(field string) bool) (texts []string) {
	for _, note := range preset.Notes {
		if lora := workload.LoRARank > 0; note.When == "lora" && !lora || note.When == "full" && lora || note.Unless != "" && given(note.Unless) || note.Under != "" && note.Under != string(workload.Strategy) {
			continue
		}
		texts = append(texts, note.Text)
	}
	return texts
}

var presets = sync.OnceValue(func() []preset {
	rows := table[preset](trainerDefaults)
	for i := range rows {
		if like := slices.IndexFunc(rows[:i], func(row preset) bool { return row.Name == rows[i].Like }); like >= 0 {
			rows[i].Sets = slices.Concat(rows[i].Sets, rows[like].Sets)
		}
	}
	return rows
})

// presetting adds a preset's defaults to the fields that flags leave open.
type presetting struct {
	workload *costmodel.Workload
	given    func(field string) bool
	made     []costmodel.Setting
	sets     []presetSet
	file     trainerRead // of --preset FILE
	// train is DeepSpeed's train_batch_size. batch is a GPU's part of a step in the file; 0: there
	// is nothing to compare.
	train, batch int64
}

// layPreset applies --preset to the fields that flags leave open. Without it, the default follows
// from the strategy when the workload is resolved.
func layPreset(request *Request, workload *costmodel.Workload) (err error) {
	if !request.Given("preset") {
		if request.Given("loss-only") && !workload.LossOnly {
			workload.Preset = "" // every trainer drops the logits, so the loop is handwritten
		}
		return nil
	}
	set := &presetting{workload: workload, given: isSet(request, workload)}
	if request.presetNotes, err = set.lay(request); err != nil {
		return err
	}
	if presetSets(workload.Preset, "mode") {
		request.Implied = "" // the preset trains, so no other flag implies it
	}
	request.preset = set
	laid := *request // the mode and strategy that it sets may contradict flags
	laid.work = *workload
	return cmp.Or(laid.refuseUnconstrained(), laid.refuseOffload(), laid.refuseSearch())
}

// applyPreset applies the defaults of --preset, or the values of its file, to open fields. It
// returns the notes to print.
func applyPreset(workload *costmodel.Workload, given func(field string) bool) (notes []string, err error) {
	return (&presetting{workload: workload, given: given}).lay(nil)
}

// lay is [applyPreset] for a command, whose other flags a file may need; request may be nil.
func (set *presetting) lay(request *Request) (notes []string, err error) {
	workload, given := set.workload, set.given
	if name := workload.Preset; isFile(name) {
		if set.file, err = readOnce(request, name); err != nil {
			return nil, err
		}
		note, err := set.file.deepSpeed(request)
		if err != nil {
			return nil, err
		}
		workload.Preset, notes = set.file.preset, slices.Concat(set.file.notes, note)
	}
	i := slices.IndexFunc(presets(), func(preset preset) bool { return preset.Name == workload.Preset })
	if i < 0 {
		return notes, nil // a handwritten loop, or it is refused with the reason
	}
	set.sets = slices.Concat(set.file.sets, presets()[i].Sets, set.file.defaults)
	if err := set.matchDeepSpeed(request); err != nil {
		return nil, err
	}
	for _, one := range set.sets {
		if err := set.apply(&one); err != nil {
			return nil, err
		}
	}
	parts := workload.MicroBatches
	if workload.DeepSpeed != nil {
		set.fillPrecision()
		parts = cmp.Or(parts, workload.DeepSpeed.Asked.Accumulation)
	}
	switch {
	case parts <= 1:
	case !given("batch"):
		set.multiply(parts) // the program's batch is that of one micro-batch
	case workload.Batch%parts != 0 && set.file.source("micro_batches") != "" && !given("micro_batches"):
		return nil, set.file.cut(workload.Batch, parts)
	}
	said := func(field string) bool { return given(field) || set.file.source(field) != "" }
	return slices.Concat([]string{set.said()}, presets()[i].notesFor(workload, said), notes), nil
}

// fillPrecision fills in the "auto" of bf16.enabled and fp16.enabled as the Trainer does. Its
// arguments are both false unless a file sets them (transformers/integrations/deepspeed.py,
// trainer_config_process).
func (set *presetting) fillPrecision() {
	asked := &set.workload.DeepSpeed.Asked
	program := set.file.preset == "transformers" || set.file.preset == "llamafactory"
	if program && asked.Section == "" && set.workload.Precision == "" {
		asked.Section = "none"
	}
}

// said returns the note with the preset's settings, as flags that work together on a command line.
func (set *presetting) said() string {
	i := slices.IndexFunc(presets(), func(preset preset) bool { return preset.Name == set.workload.Preset })
	first := "preset " + set.workload.Preset + " (" + presets()[i].Program + "):"
	for _, made := range set.made {
		name := "--" + strings.ReplaceAll(made.Field, "_", "-")
		switch made.Value {
		case "true":
			first += " " + name
		case "false":
			first += " " + name + "=false"
		default:
			first += " " + name + " " + emit.Shell(out.OneLine(made.Value))
		}
	}
	return first
}

// multiply multiplies the program's batch by a number of micro-batches or GPUs.
func (set *presetting) multiply(by int64) {
	if i := slices.IndexFunc(set.made, func(made costmodel.Setting) bool { return made.Field == "batch" }); i >= 0 {
		set.workload.Batch *= by
		set.made[i].Value = strconv.FormatInt(set.workload.Batch, 10)
	}
}

// under applies the strategy's defaults to the workload of one row.
func (set *presetting) under(workload *costmodel.Workload) {
	var none costmodel.Workload
	fields := costmodel.Fields()
	row := &presetting{workload: workload, given: set.given}
	for _, made := range set.made {
		depends := func(one presetSet) bool { return one.Field == made.Field && len(one.Under) > 0 }
		if made.Field != "strategy" && made.Field != "runtime" && slices.ContainsFunc(set.sets, depends) {
			field := fields[slices.IndexFunc(fields, func(field costmodel.Field) bool { return field.Name == made.Field })]
			field.Copy(workload, &none) // undo the default for all strategies
			continue
		}
		row.made = append(row.made, made)
	}
	for _, one := range set.sets {
		if one.Field == "strategy" || one.Field == "runtime" || one.Field == "offload" { // the row sets these
			continue
		}
		if row.apply(&one) != nil {
			return // such a number was refused before
		}
	}
}

// presetSets reports that a preset has its own default of a field.
func presetSets(name, field string) bool {
	return slices.ContainsFunc(presets(), func(preset preset) bool {
		return preset.Name == name && slices.ContainsFunc(preset.Sets, func(set presetSet) bool { return set.Field == field })
	})
}

// apply sets a field if neither the flags nor an earlier default has set it.
func (set *presetting) apply(one *presetSet) error {
	workload := set.workload
	made := func(made costmodel.Setting) bool { return made.Field == one.Field }
	if one.Field == "preset" || set.given(one.Field) || slices.ContainsFunc(set.made, made) || !one.applies(workload) {
		return nil
	}
	if one.Field == "offload" {
		workload.HostStates = one.Value == "cpu"
		set.made = append(set.made, costmodel.Setting{Field: one.Field, Value: one.Value})
		return nil
	}
	fields := costmodel.Fields()
	field := &fields[slices.IndexFunc(fields, func(field costmodel.Field) bool { return field.Name == one.Field })]
	switch at := field.Ref(workload).(type) {
	case *int64:
		number, err := strconv.ParseInt(one.Value, 10, 64)
		if err != nil || number < 0 || number > 1<<32 {
			return out.Usagef("%s: %s: %q is no number between 0 and 2^32", out.OneLine(set.file.name), one.Source, one.Value)
		}
		*at = number
	case *bool:
		*at = one.Value == "true"
	case *[]string:
		*at = strings.Split(one.Value, ",")
	default:
		field.Set(workload, one.Value)
	}
	set.made = append(set.made, costmodel.Setting{Field: one.Field, Value: one.Value})
	return nil
}

// deepSpeed refuses a DeepSpeed configuration that a file names and the command does not read: its
// name does not determine the stage.
func (read *trainerRead) deepSpeed(request *Request) (notes []string, err error) {
	name, stage := read.values["deepspeed"], read.values["deepspeed_config.zero_stage"]
	if strings.EqualFold(read.values["distributed_type"], "deepspeed") {
		name = cmp.Or(read.values["deepspeed_config.deepspeed_config_file"], "FILE")
	} else {
		stage = ""
	}
	if name == "" || name == "null" || read.source("strategy") == "deepspeed" || request == nil || request.Given("strategy") || request.dsConfig != "" {
		return nil, nil
	}
	fix := "--ds-config " + emit.Shell(out.OneLine(name)) + " reads it"
	if slices.Contains([]string{"1", "2", "3"}, stage) {
		fix = "its zero_stage is --strategy zero" + stage
	} else if stage == "" {
		fix += ", and --strategy zero1, zero2 or zero3 takes DeepSpeed's defaults"
	}
	text := out.OneLine(read.name) + " trains under DeepSpeed, whose configuration devmap does not read from there: " + fix
	switch request.cmd.Name() {
	case "plan":
		return nil, out.Usagef("%s", text)
	case "estimate":
		return []string{text}, nil
	}
	return nil, nil
}
