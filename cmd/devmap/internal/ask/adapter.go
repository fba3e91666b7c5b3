package ask

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// adapterName is the name of PEFT's file in a folder of adapters (peft/utils/constants.py).
const adapterName = "adapter_config.json"

// adapter is the part of PEFT's LoraConfig that affects memory (peft/tuners/lora/config.py). Fields
// that devmap does not count keep their JSON.
type adapter struct {
	Type        string         `json:"peft_type"`
	Base        string         `json:"base_model_name_or_path"`
	Rank        int64          `json:"r"`
	Targets     jsontext.Value `json:"target_modules"`
	Saved       []string       `json:"modules_to_save"`
	RankPattern map[string]any `json:"rank_pattern"`
	Layers      jsontext.Value `json:"layers_to_transform"`
	Bias        string         `json:"bias"`
	DoRA        bool           `json:"use_dora"`
}

// moduleName matches a module name that --lora-targets accepts.
var moduleName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// Base returns the base model of a command's MODEL argument. For a folder of PEFT adapters, or its
// adapter_config.json, that is the base. The request then trains it with LoRA of that rank and
// those targets, as if you gave the flags. Any other argument is the model itself.
func Base(request *Request, arg string) (base string, notes []string, err error) {
	file := adapterFile(arg)
	if file == "" {
		return arg, nil, nil
	}
	const limit = 1 << 20
	data, err := modelgraph.ReadSmall(file, "an adapter's config", limit)
	if err != nil {
		return "", nil, err
	}
	read, targets, err := parseAdapter(file, data)
	if err != nil {
		return "", nil, err
	}
	set := map[string]string{"lora-rank": strconv.FormatInt(read.Rank, 10), "lora-targets": targets, "mode": string(costmodel.Train)}
	if targets == "" && !request.Given("lora-targets") {
		return "", nil, out.Usagef("%s: target_modules %s is a pattern, which --lora-targets has no form for: name the modules (--lora-targets q_proj,v_proj)", file, out.Cell(string(read.Targets)))
	}
	var as []string
	for _, name := range []string{"mode", "lora-rank", "lora-targets"} {
		if flag := request.cmd.Flags().Lookup(name); flag != nil && !flag.Changed {
			if err := request.cmd.Flags().Set(name, set[name]); err != nil {
				return "", nil, fmt.Errorf("%s: %w", file, err)
			}
			as = append(as, "--"+name+" "+set[name])
		}
	}
	if _, err := ReadModel(read.Base, Reading{Transformers: request.Transformers}); err != nil {
		return "", nil, fmt.Errorf("%s: the adapter's base: %w", file, err)
	}
	note := fmt.Sprintf("%s holds LoRA adapters: planned is their base %s", arg, out.Cell(read.Base))
	if len(as) > 0 {
		note += " with " + strings.Join(as, " ")
	}
	return read.Base, append([]string{note}, read.uncounted()...), nil
}

// adapterFile returns the adapter_config.json that an argument names, or that is in a folder
// without a model's config. It is empty for any other argument.
func adapterFile(arg string) string {
	place, builtIn := load.Place(arg, load.Options{})
	if place == "" || builtIn != nil {
		return ""
	}
	if filepath.Base(place) == adapterName {
		return place
	}
	there := func(name string) bool {
		info, err := os.Lstat(filepath.Join(place, name))
		return err == nil && !info.IsDir()
	}
	if !there(adapterName) || there(hf.ConfigName) {
		return ""
	}
	return filepath.Join(place, adapterName)
}

// parseAdapter reads an adapter_config.json. targets is the value of --lora-targets, empty for a
// pattern.
func parseAdapter(file string, data []byte) (read adapter, targets string, err error) {
	fault := func(place, format string, args ...any) (adapter, string, error) {
		return adapter{}, "", &modelgraph.SyntaxError{File: file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(data, &read); err != nil {
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			return fault("", "this is not JSON: %v", syntax.Err)
		}
		return fault("", "this is not a config of PEFT: %v", err)
	}
	switch {
	case read.Type != "LORA":
		return fault("peft_type", "%q is not LORA, the only kind of adapters that is planned", read.Type)
	case read.Base == "":
		return fault("base_model_name_or_path", "it names no model: give the base and --lora-rank")
	case read.Rank < 1 || read.Rank > 1<<16:
		return fault("r", "%d is not a rank from 1 to %d", read.Rank, 1<<16)
	}
	targets, wrong := targetsOf(read.Targets)
	if wrong != "" {
		return fault("target_modules", "%s", wrong)
	}
	return read, targets, nil
}

// targetsOf returns the value of --lora-targets for target_modules, empty for a pattern. If the
// value is invalid, wrong says why.
func targetsOf(value jsontext.Value) (targets, wrong string) {
	var names []string
	switch value.Kind() {
	case '[':
		if err := json.Unmarshal(value, &names); err != nil || len(names) == 0 || len(names) > 4096 {
			return "", "it is no list of names of modules"
		}
	case '"':
		if err := json.Unmarshal(value, &targets); err != nil {
			return "", err.Error()
		}
		if !strings.EqualFold(targets, "all-linear") {
			return "", ""
		}
		return "all-linear", ""
	default:
		return "", "it names no modules, and PEFT's defaults of a model type are not known here: give the base and --lora-targets"
	}
	slices.Sort(names) // PEFT writes a set, in any order
	for _, name := range names {
		if !moduleName.MatchString(name) {
			return "", fmt.Sprintf("%q is not the name of a module", name)
		}
	}
	return strings.Join(slices.Compact(names), ","), ""
}

// uncounted returns a note on the config's other trained parts, which devmap does not count.
func (read *adapter) uncounted() (notes []string) {
	var more []string
	for name, is := range map[string]bool{
		"modules_to_save": len(read.Saved) > 0, "rank_pattern": len(read.RankPattern) > 0, "use_dora": read.DoRA,
		"layers_to_transform": len(read.Layers) > 0 && read.Layers.Kind() != 'n', "bias": read.Bias != "" && read.Bias != "none",
	} {
		if is {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	if len(more) > 0 {
		notes = append(notes, "the adapter's config also sets "+strings.Join(more, ", ")+", which is not counted")
	}
	return notes
}
