package ask

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
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
	"github.com/devmap-dev/devmap/planner/emit"
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
	Instead map[string]string // what to do about a value that devmap does not count, by key
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
	sets     []presetSet
	file     trainerRead // of --preset FILE
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
	set := &presetting{workload: workload, given: isSet(request, workload)}
	if request.presetNotes, err = set.lay(request); err != nil {
		return err
	}
	if presetSets(workload.Preset, "mode") {
		request.Implied = "" // the preset trains, whatever else implies it
	}
	request.preset = set
	laid := *request // the mode and strategy that it set may contradict flags
	laid.work = *workload
	return cmp.Or(laid.refuseUnconstrained(), laid.refuseOffload(), laid.refuseSearch())
}

// applyPreset lays the defaults of --preset, or what its file says, under the
// flags; it returns what is to be said of them.
func applyPreset(workload *costmodel.Workload, given func(field string) bool) (notes []string, err error) {
	return (&presetting{workload: workload, given: given}).lay(nil)
}

// lay is [applyPreset] for a command, whose other flags a file may need; nil: none.
func (set *presetting) lay(request *Request) (notes []string, err error) {
	workload, given := set.workload, set.given
	if name := workload.Preset; strings.ContainsAny(name, "/.\\") {
		if set.file, err = readTrainerFile(name); err != nil {
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
		return notes, nil // a loop by hand, or it is refused with the reason
	}
	set.sets = slices.Concat(set.file.sets, presets()[i].Sets)
	for _, one := range set.sets {
		if err := set.apply(&one); err != nil {
			return nil, err
		}
	}
	parts := workload.MicroBatches
	if workload.DeepSpeed != nil {
		parts = cmp.Or(parts, workload.DeepSpeed.Asked.Accumulation)
	}
	switch {
	case parts <= 1:
	case !given("batch"):
		set.multiply(parts) // the program's is that of a micro-batch
	case workload.Batch%parts != 0 && set.file.source("micro_batches") != "" && !given("micro_batches"):
		return nil, set.file.cut(workload.Batch, parts)
	}
	said := func(field string) bool { return given(field) || set.file.source(field) != "" }
	return slices.Concat([]string{set.said()}, presets()[i].notesFor(workload, said), notes), nil
}

// cut refuses a batch that the file's accumulation does not divide.
func (read *trainerRead) cut(batch, parts int64) error {
	key := read.source("micro_batches")
	return out.Usagef("--batch %d is the whole batch of a step, and %s of %s, %d, is no divisor of it: --batch %d has micro-batches of %d, --micro-batches 1 accumulates nothing",
		batch, key, out.OneLine(read.name), parts, batch*parts, batch)
}

// source is the file's key that sets a field.
func (read *trainerRead) source(field string) string {
	if i := slices.IndexFunc(read.sets, func(set presetSet) bool { return set.Field == field }); i >= 0 {
		return read.sets[i].Source
	}
	return ""
}

// deepSpeed refuses a DeepSpeed configuration that a file names and the command
// does not read: its name says nothing certain of its stage.
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

// differs are notes on a model and a number of GPUs that the file says otherwise.
func (read *trainerRead) differs(model string, gpus int) (notes []string) {
	bare := func(name string) string {
		name = strings.ToLower(name[strings.LastIndexByte(strings.TrimRight(name, "/"), '/')+1:])
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, name)
	}
	for _, key := range []string{"base_model", "model_name_or_path", "model"} {
		ours, theirs := bare(model), bare(read.values[key])
		if value := read.values[key]; value != "null" && theirs != "" && !strings.Contains(ours, theirs) && !strings.Contains(theirs, ours) {
			notes = append(notes, fmt.Sprintf("%s: %s is %q, and the model here is %s", out.OneLine(read.name), key, value, out.OneLine(model)))
		}
	}
	if number, err := strconv.Atoi(read.values["num_processes"]); err == nil && number != gpus {
		notes = append(notes, fmt.Sprintf("%s: num_processes is %d, and the GPUs here are %d", out.OneLine(read.name), number, gpus))
	}
	return notes
}

// said is the note of what the preset sets, in flags that can be typed together.
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

// multiply makes the program's batch that of more micro-batches or GPUs.
func (set *presetting) multiply(by int64) {
	if i := slices.IndexFunc(set.made, func(made costmodel.Setting) bool { return made.Field == "batch" }); i >= 0 {
		set.workload.Batch *= by
		set.made[i].Value = strconv.FormatInt(set.workload.Batch, 10)
	}
}

// under lays what depends on the strategy under the workload of one row.
func (set *presetting) under(workload *costmodel.Workload) {
	var none costmodel.Workload
	fields := costmodel.Fields()
	row := &presetting{workload: workload, given: set.given}
	for _, made := range set.made {
		depends := func(one presetSet) bool { return one.Field == made.Field && len(one.Under) > 0 }
		if made.Field != "strategy" && made.Field != "runtime" && slices.ContainsFunc(set.sets, depends) {
			field := fields[slices.IndexFunc(fields, func(field costmodel.Field) bool { return field.Name == made.Field })]
			field.Copy(workload, &none) // what was said of all strategies
			continue
		}
		row.made = append(row.made, made)
	}
	for _, one := range set.sets {
		if one.Field == "strategy" || one.Field == "runtime" || one.Field == "offload" { // the row's own
			continue
		}
		if row.apply(&one) != nil {
			return // a number that was refused before
		}
	}
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

// trainerRead is what a training program's configuration says.
type trainerRead struct {
	name, preset string
	values       map[string]string // by path
	sets         []presetSet
	notes        []string
}

// readTrainerFile reads a training program's own configuration: its preset, what
// it sets, and the keys that devmap does not know.
func readTrainerFile(name string) (read trainerRead, err error) {
	text, err := modelgraph.ReadSmall(name, "a trainer's configuration", maxPresetBytes)
	if err != nil {
		return read, err
	}
	values := make(map[string]string)
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return read, out.Usagef("%s: %w", name, err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return read, out.Usagef("%s is no configuration: it has no keys", name)
	}
	if err := flatten(values, "", document.Content[0]); err != nil {
		return read, out.Usagef("%s: %w", name, err)
	}
	file := fileOf(values)
	if file == nil {
		return read, out.Usagef("%s is of no program that devmap reads: LLaMA-Factory, axolotl, ms-swift, TrainingArguments, accelerate config, torchtune, TRL's scripts", name)
	}
	read = trainerRead{name: name, values: maps.Clone(values)}
	if without := file.withoutFSDP(values); without != "" {
		read.notes = []string{name + ": fsdp_config changes nothing without " + without}
	}
	if unread := file.withoutPEFT(values); unread != "" {
		read.notes = append(read.notes, name+": "+unread+" changes nothing without use_peft: true")
	}
	if read.sets, err = file.read(values); err != nil {
		return read, out.Usagef("%s: %w", name, err)
	}
	if unknown := file.unknown(values); len(unknown) > 0 {
		read.notes = append(read.notes, name+": devmap does not read "+strings.Join(unknown, ", "))
	}
	read.preset = variant(file.Preset, read.sets)
	return read, nil
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

// withoutFSDP takes out the keys under fsdp_config if the program ignores them. It
// returns the key that is missing: fsdp (training_args.py, _process_fsdp_args), or
// distributed_type in accelerate's own file. Empty: none is.
func (file *trainerFile) withoutFSDP(values map[string]string) (missing string) {
	if file.Keys["fsdp"] != nil && file.Keys["fsdp"]["true"] == nil { // axolotl needs no key but fsdp_version
		return ""
	}
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
	if err := file.contradicts(values); err != nil {
		return nil, err
	}
	sets := evaluates(values)
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
			return nil, file.uncounted(key, value)
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

// uncounted refuses a value, with what to do, or the value that is nearest.
func (file *trainerFile) uncounted(key, value string) error {
	near := ""
	if names := modelgraph.Nearest(value, slices.Sorted(maps.Keys(file.Keys[key])), 1, slips(value)); len(names) > 0 && names[0] != "" {
		near = " (did you mean " + names[0] + "?)"
	}
	if instead := file.Instead[key]; instead != "" {
		near += ": " + instead
	}
	return fmt.Errorf("%s is %q, which devmap does not count%s", key, value, near)
}

// contradicts refuses keys that do not go together.
func (file *trainerFile) contradicts(values map[string]string) error {
	on := func(key string) bool { return strings.EqualFold(values[key], "true") }
	version := values["fsdp_version"] + values["fsdp_config.fsdp_version"] + values["fsdp_config.version"]
	inFSDP := func(key string) bool { return strings.HasPrefix(key, "fsdp_config.") }
	switch {
	case on("fp16") && on("bf16"):
		return errors.New("fp16 and bf16 are both true: a program trains in one of them; set the other to false")
	case file.Preset == "axolotl" && version == "" && slices.ContainsFunc(slices.Collect(maps.Keys(values)), inFSDP):
		return errors.New("fsdp_config without fsdp_version is FSDP1, which devmap does not count under axolotl: add fsdp_version: 2")
	}
	return nil
}

// evaluates is the batch of an evaluation between steps; without a strategy of
// evaluation there is none.
func evaluates(values map[string]string) []presetSet {
	const key = "per_device_eval_batch_size"
	when := strings.ToLower(cmp.Or(values["eval_strategy"], values["evaluation_strategy"]))
	if slices.Contains(offValues, when) || when == "no" || when == "null" || values[key] == "" || values[key] == "null" {
		return nil
	}
	return []presetSet{{Field: "eval_batch", Value: values[key], Source: key}}
}

// withoutPEFT takes out the keys of adapters that TRL's script leaves unread
// without use_peft (trl/trainer/model_config.py, get_peft_config), and names one.
func (file *trainerFile) withoutPEFT(values map[string]string) (unread string) {
	if _, has := file.Keys["use_peft"]; !has || strings.EqualFold(values["use_peft"], "true") {
		return ""
	}
	for _, key := range []string{"lora_target_modules", "lora_dropout", "lora_r"} {
		if _, has := values[key]; has {
			unread = key
			delete(values, key)
		}
	}
	return unread
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
		} else if near := nearWords(key, known); near != "" {
			name += " (did you mean " + near + "?)"
		}
		out = append(out, name)
	}
	return out
}

// nearWords is the known key that has all words of a key in order, or longer forms
// of them, and the fewest others; empty where none has.
func nearWords(key string, known []string) (near string) {
	split := func(name string) []string {
		return strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' })
	}
	words, fewest := split(key), 3
	for _, name := range known {
		others, next := 0, 0
		for _, word := range split(name) {
			if next < len(words) && (word == words[next] || len(words[next]) > 2 && strings.HasPrefix(word, words[next])) {
				next++
			} else {
				others++
			}
		}
		if next == len(words) && len(words) > 1 && others < fewest && !strings.HasPrefix(name, key+".") {
			near, fewest = name, others
		}
	}
	return near
}
