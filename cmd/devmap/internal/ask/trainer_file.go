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

//go:embed trainer_files.json
var trainerFiles []byte

// presetSet is a default: a field of the workload, its value, and its place in the program's source
// (file:name).
type presetSet struct {
	Field, Value, Source string
	Under                []string // strategies with this default; nil: all
	When                 string   // lora or full, if it holds only with or without adapters
}

// applies reports that a default applies to a workload's strategy and method.
func (set *presetSet) applies(workload *costmodel.Workload) bool {
	strategy := workload.Strategy
	if strategy.Traits().Open && slices.Contains(set.Under, string(costmodel.FSDP)) {
		strategy = costmodel.DDP // defaults of both hold for all strategies
	}
	if set.Field == "max_pixels" && workload.Images == 0 {
		return false // without images, a limit of their size has no use
	}
	when, ofAdapters := "full", strings.HasPrefix(set.Field, "lora_") && set.Field != "lora_rank"
	if workload.LoRARank > 0 {
		when, ofAdapters = "lora", false
	}
	return !ofAdapters && (set.When == "" || set.When == when) && (len(set.Under) == 0 || slices.Contains(set.Under, string(strategy)))
}

// table reads an embedded table.
func table[row any](text []byte) (rows []row) {
	if err := json.Unmarshal(text, &rows); err != nil {
		panic(err)
	}
	return rows
}

// trainerFile is a training program's configuration file.
type trainerFile struct {
	Preset string
	Marks  []string // keys that only this program's file has
	// Keys maps the keys that devmap reads, by path, to the settings of each value. "*" matches any
	// value, which then becomes the field's value.
	Keys    map[string]map[string][]presetSet
	Refused map[string]string // parts of values that devmap does not count, by key
	Instead map[string]string // the fix for a value that devmap does not count, by key
	Nothing map[string]string // why a switch changes nothing, by key
	Ignored []string          // keys that change no GPU memory
	// Evaluates is the key of an evaluation's batch, and the batch without it: a number, or another
	// key.
	Evaluates []string
}

var files = sync.OnceValue(func() []trainerFile { return table[trainerFile](trainerFiles) })

// offValues lists the values that turn a setting off, in a file and in a flag.
var offValues = []string{"", "0", "false", "none", "off"}

// maxPresetBytes and maxPresetKeys limit a training program's configuration.
const (
	maxPresetBytes = 1 << 20
	maxPresetKeys  = 2000
)

// isFile reports that a value of --preset is a file name.
func isFile(preset string) bool { return strings.ContainsAny(preset, "/.\\") }

// trainerRead is the content of a training program's configuration.
type trainerRead struct {
	name, preset string
	file         *trainerFile
	inline       []byte            // DeepSpeed's configuration, if it is a section of the file
	values       map[string]string // by path
	sets         []presetSet
	defaults     []presetSet // settings that follow from the file if the preset sets none
	notes        []string
}

// cut refuses a batch that the file's accumulation does not divide.
func (read *trainerRead) cut(batch, parts int64) error {
	key := read.source("micro_batches")
	return out.Usagef("--batch %d is a step's whole batch, and %s of %s, %d, does not divide it: use --batch %d, or --micro-batches 1",
		batch, key, out.OneLine(read.name), parts, batch*parts)
}

// source returns the file's key that sets a field.
func (read *trainerRead) source(field string) string {
	if i := slices.IndexFunc(read.sets, func(set presetSet) bool { return set.Field == field }); i >= 0 {
		return read.sets[i].Source
	}
	return ""
}

// differs returns notes on a model and a number of GPUs that differ from the file's.
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

// readTrainerFile reads a training program's own configuration: its preset, its settings, and the
// keys that devmap does not know.
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
	read = trainerRead{name: name, file: file, values: maps.Clone(values)}
	if read.inline, err = deepSpeedSection(document.Content[0]); err != nil {
		return read, out.Usagef("%s: %w", name, err)
	}
	if without := file.withoutFSDP(values); without != "" {
		read.notes = []string{name + ": fsdp_config changes nothing without " + without}
	}
	for _, key := range slices.Sorted(maps.Keys(file.Nothing)) {
		if strings.EqualFold(values[key], "true") {
			read.notes = append(read.notes, name+": "+key+" changes nothing: "+file.Nothing[key])
		}
	}
	for _, note := range file.withoutSwitch(values) {
		read.notes = append(read.notes, name+": "+note)
	}
	if read.sets, err = file.read(values); err != nil {
		return read, out.Usagef("%s: %w", name, err)
	}
	if unknown := file.unknown(values); len(unknown) > 0 {
		read.notes = append(read.notes, name+": devmap does not read "+strings.Join(unknown, ", "))
	}
	read.preset = variant(file.Preset, read.sets)
	if read.preset == file.Preset { // devmap does not count FSDP1's evaluation
		read.defaults = file.usualEvaluation(values)
	}
	return read, nil
}

// deepSpeedSection returns DeepSpeed's configuration in a file as JSON; nil if there is none.
func deepSpeedSection(file *yaml.Node) ([]byte, error) {
	for i := 0; i+1 < len(file.Content); i += 2 {
		if file.Content[i].Value != "deepspeed" || file.Content[i+1].Kind != yaml.MappingNode {
			continue
		}
		var section map[string]any
		if err := file.Content[i+1].Decode(&section); err != nil {
			return nil, err
		}
		return json.Marshal(section)
	}
	return nil, nil
}

// variant returns the preset for a file with FSDP1, with or without prefetch, which matters only
// there.
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

// flatten adds values by path, for example fsdp_config.version.
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
				if path == "test_datasets" && item.Kind == yaml.MappingNode {
					items = append(items, "{}") // stands for a dataset
				}
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

// fileOf returns the program that has most of a file's keys as its own; nil if none has any.
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

// read returns the file's settings, in the order of their dependencies.
func (file *trainerFile) read(values map[string]string) ([]presetSet, error) {
	if err := file.contradicts(values); err != nil {
		return nil, err
	}
	sets := slices.Concat(file.evaluation(values), file.liger(values), file.tuneTargets(values))
	for _, key := range slices.Sorted(maps.Keys(file.Keys)) {
		value, ok := values[key]
		means := file.Keys[key]["absent"]
		if !ok && means != nil && slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(other string) bool { return strings.HasPrefix(other, "fsdp_config.") }) {
			sets = append(sets, sourced(means, key)...) // the program's default
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

// uncounted returns the error of a value, with the fix or the closest value.
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

// sourced returns settings with their key as the source.
func sourced(sets []presetSet, key string) []presetSet {
	out := slices.Clone(sets)
	for i := range out {
		out[i].Source = key
	}
	return out
}

// rank orders settings by their dependencies. Full training has the lowest rank of its field, so it
// overrides other keys.
func (set *presetSet) rank() int {
	switch {
	case set.Field == "strategy" && strings.HasPrefix(set.Source, "parallelism_config."): // distributed_type is FSDP for HSDP too
		return -1
	case set.Field == "strategy":
		return 0
	case set.Field == "lora_rank" && set.Value == "0":
		return 1
	case set.Field == "lora_rank":
		return 2
	case set.Source == "packing_strategy", set.Source == "fp16": // before packing and bf16
		return 3
	case set.Field == "float8" && (set.Source == "fp8" || set.Source == "mixed_precision"):
		return 5 // another key may name the recipe
	}
	return 4
}

// unknown lists the keys that devmap does not know, with the closest known key.
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

// nearWords returns the known key that has all words of a key in order, or longer forms of them. It
// prefers the fewest other words, at most two. It returns "" if there is no such key.
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

// slips returns how many letters of a word may be wrong: more in a long one.
func slips(word string) int { return min(4, len(word)/5) }
