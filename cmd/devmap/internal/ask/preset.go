package ask

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

//go:embed trainer_defaults.json
var trainerDefaults []byte

//go:embed trainer_files.json
var trainerFiles []byte

// preset is the defaults of a training program.
type preset struct {
	Name, Program string // Program: packages and versions that they were read in
	Sets          []presetSet
	Like          string // a preset before it whose defaults it has
	Notes         []presetNote
}

// presetNote is what is to be said of a preset where it is true.
type presetNote struct {
	Text   string
	When   string // lora or full
	Under  string // a strategy
	Unless string // a field that is set otherwise: its note is out of date
}

// UnmarshalJSON reads a note that is always true as a text.
func (note *presetNote) UnmarshalJSON(text []byte) error {
	type object presetNote
	if text[0] == '"' {
		return json.Unmarshal(text, &note.Text)
	}
	return json.Unmarshal(text, (*object)(note))
}

// notesFor are the texts of the notes that are true of a workload.
func (preset *preset) notesFor(workload *costmodel.Workload, given func(field string) bool) (texts []string) {
	for _, note := range preset.Notes {
		if lora := workload.LoRARank > 0; note.When == "lora" && !lora || note.When == "full" && lora || note.Unless != "" && given(note.Unless) || note.Under != "" && note.Under != string(workload.Strategy) {
			continue
		}
		texts = append(texts, note.Text)
	}
	return texts
}

// presetSet is a default: a field of the workload, its value, and where the
// program has it (file:name).
type presetSet struct {
	Field, Value, Source string
	Under                []string // strategies that have it; none: all
	When                 string   // lora or full, where it holds with or without adapters alone
}

// trainerFile is a training program's configuration file.
type trainerFile struct {
	Preset string
	Marks  []string // keys that no other program's file has
	// Keys are those that devmap reads, by path, and what their values set; "*"
	// stands for any value, which is then the field's own.
	Keys    map[string]map[string][]presetSet
	Refused map[string]string // parts of values that devmap does not count, by key
	Ignored []string          // they change no memory on a GPU
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

var files = sync.OnceValue(func() []trainerFile { return table[trainerFile](trainerFiles) })

// table reads a table that is part of the program.
func table[row any](text []byte) (rows []row) {
	if err := json.Unmarshal(text, &rows); err != nil {
		panic(err)
	}
	return rows
}

// maxPresetBytes and maxPresetKeys bound a training program's configuration.
const (
	maxPresetBytes = 1 << 20
	maxPresetKeys  = 2000
)

// presetting lays a preset's defaults under the flags.
type presetting struct {
	workload *costmodel.Workload
	given    func(field string) bool
	made     []costmodel.Setting
}

// layPreset lays what --preset says under the flags; without it, the default
// follows from the strategy as the workload is resolved.
func layPreset(request *Request, workload *costmodel.Workload) (err error) {
	if !request.Given("preset") {
		if request.Given("loss-only") && !workload.LossOnly {
			workload.Preset = "" // no trainer keeps the logits: the loop is written by hand
		}
		return nil
	}
	if request.presetNotes, err = applyPreset(workload, isSet(request, workload)); err != nil {
		return err
	}
	if presetSets(workload.Preset, "mode") {
		request.Implied = "" // the preset trains, whatever else implies it
	}
	laid := *request // the mode and strategy that it set may contradict flags
	laid.work = *workload
	return cmp.Or(laid.refuseUnconstrained(), laid.refuseOffload(), laid.refuseSearch())
}

// applyPreset lays the defaults of --preset, or what its file says, under the
// flags; it returns what is to be said of them.
func applyPreset(workload *costmodel.Workload, given func(field string) bool) (notes []string, err error) {
	set := &presetting{workload: workload, given: given}
	var sets []presetSet
	if name := workload.Preset; strings.ContainsAny(name, "/.\\") {
		if workload.Preset, sets, notes, err = readTrainerFile(name); err != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(presets(), func(preset preset) bool { return preset.Name == workload.Preset })
	if i < 0 {
		return notes, nil // a loop by hand, or it is refused with the reason
	}
	for _, one := range slices.Concat(sets, presets()[i].Sets) {
		if err := set.apply(&one); err != nil {
			return nil, err
		}
	}
	if parts := workload.MicroBatches; parts > 1 && !given("micro_batches") && !given("batch") {
		workload.Batch *= parts // the program's is that of a micro-batch
	}
	first := "preset " + workload.Preset + " (" + presets()[i].Program + "):"
	for _, made := range set.made {
		first += strings.TrimSuffix(" --"+strings.ReplaceAll(made.Field, "_", "-")+" "+made.Value, " true")
	}
	said := func(field string) bool {
		return given(field) || slices.ContainsFunc(sets, func(file presetSet) bool { return file.Field == field })
	}
	return slices.Concat([]string{first}, presets()[i].notesFor(workload, said), notes), nil
}

// presetSets reports a field that a preset gives a default of its own.
func presetSets(name, field string) bool {
	return slices.ContainsFunc(presets(), func(preset preset) bool {
		return preset.Name == name && slices.ContainsFunc(preset.Sets, func(set presetSet) bool { return set.Field == field })
	})
}

// apply sets a field that neither the flags nor what came before have set.
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
			return out.Usagef("--preset: %s is %q, which is no number between 0 and 2^32", one.Source, one.Value)
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

// applies reports that a default is one under a workload's strategy and method.
func (set *presetSet) applies(workload *costmodel.Workload) bool {
	strategy := workload.Strategy
	if strategy.Traits().Open && slices.Contains(set.Under, string(costmodel.FSDP)) {
		strategy = costmodel.DDP // what holds under both may be said of all
	}
	if set.Field == "max_pixels" && workload.Images == 0 {
		return false // a bound of images that there are none of
	}
	when, ofAdapters := "full", strings.HasPrefix(set.Field, "lora_") && set.Field != "lora_rank"
	if workload.LoRARank > 0 {
		when, ofAdapters = "lora", false
	}
	return !ofAdapters && (set.When == "" || set.When == when) && (len(set.Under) == 0 || slices.Contains(set.Under, string(strategy)))
}

// readTrainerFile reads a training program's own configuration: its preset, what
// it sets, and the keys that devmap does not know.
func readTrainerFile(name string) (preset string, sets []presetSet, notes []string, err error) {
	text, err := modelgraph.ReadSmall(name, "a trainer's configuration", maxPresetBytes)
	if err != nil {
		return "", nil, nil, err
	}
	values := make(map[string]string)
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", nil, nil, out.Usagef("%s: %w", name, err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return "", nil, nil, out.Usagef("%s is no configuration: it has no keys", name)
	}
	if err := flatten(values, "", document.Content[0]); err != nil {
		return "", nil, nil, out.Usagef("%s: %w", name, err)
	}
	file := fileOf(values)
	if file == nil {
		return "", nil, nil, out.Usagef("%s is of no program that devmap reads: LLaMA-Factory, axolotl, ms-swift, TrainingArguments, accelerate config, torchtune", name)
	}
	if without := file.withoutFSDP(values); without != "" {
		notes = []string{name + ": fsdp_config changes nothing without " + without}
	}
	if sets, err = file.read(values); err != nil {
		return "", nil, nil, out.Usagef("%s: %w", name, err)
	}
	if unknown := file.unknown(values); len(unknown) > 0 {
		notes = append(notes, name+": devmap does not read "+strings.Join(unknown, ", "))
	}
	return variant(file.Preset, sets), sets, notes, nil
}

// variant is the preset of what a file says of FSDP1: its prefetch matters there
// alone.
func variant(preset string, sets []presetSet) string {
	says := func(name string) bool {
		return slices.ContainsFunc(sets, func(set presetSet) bool { return set.Field == "preset" && set.Value == name })
	}
	first := preset + ":fsdp1"
	switch {
	case says(first) && says(first+"-prefetch"):
		return first + "-prefetch"
	case says(first):
		return first
	}
	return preset
}

// flatten lists values by path: fsdp_config.version.
func flatten(values map[string]string, below string, node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := below + key.Value
		_, twice := values[path]
		switch {
		case twice:
			return fmt.Errorf("line %d: the key %q stands twice", key.Line, path)
		case len(values) >= maxPresetKeys:
			return fmt.Errorf("line %d: more than %d keys", key.Line, maxPresetKeys)
		case value.Kind == yaml.AliasNode:
			return fmt.Errorf("line %d: the value of %q is an alias, which devmap does not follow", value.Line, path)
		}
		values[path] = value.Value
		switch value.Kind {
		case yaml.MappingNode:
			if err := flatten(values, path+".", value); err != nil {
				return err
			}
		case yaml.SequenceNode:
			var items []string
			for _, item := range value.Content {
				items = append(items, item.Value)
			}
			values[path] = strings.Join(items, ",")
		default:
			if value.Tag == "!!null" {
				values[path] = "null"
			}
		}
	}
	return nil
}

// fileOf is the program of whose own keys a file has most; nil: none.
func fileOf(values map[string]string) *trainerFile {
	var best *trainerFile
	most := 0
	for i := range files() {
		count := 0
		for _, mark := range files()[i].Marks {
			if _, ok := values[mark]; ok {
				count++
			}
		}
		if count > most {
			best, most = &files()[i], count
		}
	}
	return best
}

// withoutFSDP takes out the keys under fsdp_config where the program leaves them
// unread without a word, and returns the key that is missing: fsdp
// (training_args.py, _process_fsdp_args), or the kind in accelerate's own file.
func (file *trainerFile) withoutFSDP(values map[string]string) (missing string) {
	missing = "fsdp: true"
	off := slices.Contains(offValues, values["fsdp"]) || values["fsdp"] == "null"
	if _, has := file.Keys["distributed_type"]; has {
		missing, off = "distributed_type: FSDP", !strings.EqualFold(values["distributed_type"], "FSDP")
	} else if _, has := file.Keys["fsdp"]; !has {
		return ""
	}
	before := len(values)
	maps.DeleteFunc(values, func(key, _ string) bool { return off && strings.HasPrefix(key, "fsdp_config.") })
	if len(values) == before {
		return ""
	}
	return missing
}

// read is what the file sets, what others depend on first.
func (file *trainerFile) read(values map[string]string) ([]presetSet, error) {
	var sets []presetSet
	for _, key := range slices.Sorted(maps.Keys(file.Keys)) {
		value, ok := values[key]
		means := file.Keys[key]["absent"]
		if !ok && means != nil && slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(other string) bool { return strings.HasPrefix(other, "fsdp_config.") }) {
			sets = append(sets, sourced(means, key)...) // what the program assumes
		}
		if !ok || value == "null" {
			continue
		}
		means, listed := file.Keys[key][strings.ToLower(value)]
		if !listed {
			means, listed = file.Keys[key]["*"]
		}
		if part := file.Refused[key]; !listed || part != "" && strings.Contains(value, part) {
			near := ""
			if names := modelgraph.Nearest(value, slices.Sorted(maps.Keys(file.Keys[key])), 1, slips(value)); len(names) > 0 && names[0] != "" {
				near = " (did you mean " + names[0] + "?)"
			}
			return nil, fmt.Errorf("%s is %q, which devmap does not count%s", key, value, near)
		}
		for _, set := range sourced(means, key) {
			if set.Value == "*" {
				set.Value = value
			}
			sets = append(sets, set)
		}
	}
	slices.SortStableFunc(sets, func(a, b presetSet) int { return cmp.Compare(a.rank(), b.rank()) })
	return sets, nil
}

// sourced are settings with the key that makes them as their source.
func sourced(sets []presetSet, key string) []presetSet {
	out := slices.Clone(sets)
	for i := range out {
		out[i].Source = key
	}
	return out
}

// rank orders settings that others depend on before them; full training is a
// rank of 0, whatever another key says.
func (set *presetSet) rank() int {
	switch {
	case set.Field == "strategy":
		return 0
	case set.Field == "lora_rank" && set.Value == "0":
		return 1
	case set.Field == "lora_rank":
		return 2
	}
	return 3
}

// slips are how many letters of a word may be wrong: more of a long one.
func slips(word string) int { return min(4, len(word)/5) }

// unknown are the keys that devmap does not know, with the known key that is
// nearest.
func (file *trainerFile) unknown(values map[string]string) []string {
	known := slices.Concat(slices.Sorted(maps.Keys(file.Keys)), file.Ignored, files()[0].Ignored)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		base, _, nested := strings.Cut(key, ".")
		if slices.Contains(known, key) || slices.Contains(known, base) && nested && !slices.ContainsFunc(known, func(name string) bool { return strings.HasPrefix(name, base+".") }) || values[key] == "" {
			continue
		}
		name := fmt.Sprintf("%q", key)
		if near := modelgraph.Nearest(key, known, 1, slips(key)); near != nil {
			name += " (did you mean " + near[0] + "?)"
		}
		out = append(out, name)
	}
	return out
}
