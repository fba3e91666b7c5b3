package diffusers

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

// config is a component's config.json, filled with its class's defaults. It keeps the first fault.
// Values that are read after a fault are small and harmless.
type config struct {
	file, class string
	fields      map[string]jsontext.Value
	warnings    []string
	fault       *modelgraph.SyntaxError
}

// maxDim limits a size; maxCount limits a list and a number of blocks.
const (
	maxDim   = 1 << 24
	maxCount = 1 << 12
)

// classNamed returns the class that a component's config names, empty if it names none.
func classNamed(data []byte) string {
	var named struct {
		Class string `json:"_class_name"`
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return ""
	}
	return named.Class
}

// parseConfig reads the text of a config.json. Fields without an argument of the class are left out
// with a warning, as in diffusers (configuration_utils.py: ConfigMixin.extract_init_dict).
func parseConfig(file string, data []byte) (*config, error) {
	cfg := &config{file: file}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, &modelgraph.SyntaxError{File: file, Msg: fmt.Sprintf("this is not a JSON object: %v", err)}
	}
	if err := json.Unmarshal(fields["_class_name"], &cfg.class); err != nil {
		cfg.fail("_class_name", "it names no class of diffusers")
		return nil, cfg.fault
	}
	defaults := defaultsOf(cfg.class)
	if defaults == nil {
		cfg.fail("_class_name", "%q is not a class that is known here (known: %s)", clip(cfg.class), strings.Join(slices.Sorted(maps.Keys(readers)), ", "))
		return nil, cfg.fault
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasPrefix(name, "_") {
			continue
		}
		if _, known := defaults[name]; !known {
			cfg.warnings = append(cfg.warnings, fmt.Sprintf("%s: %s has no field %q: diffusers 0.42 ignores it, and so does devmap", file, cfg.class, clip(name)))
			continue
		}
		defaults[name] = fields[name]
	}
	cfg.fields = defaults
	return cfg, nil
}

// fail keeps the first fault.
func (cfg *config) fail(field, format string, args ...any) {
	if cfg.fault == nil {
		cfg.fault = &modelgraph.SyntaxError{File: cfg.file, Place: field, Msg: fmt.Sprintf(format, args...)}
	}
}

// size reads a number from 1 on.
func (cfg *config) size(field string) int64 { return cfg.sizeOf(field, cfg.fields[field]) }

func (cfg *config) sizeOf(field string, value jsontext.Value) int64 {
	count, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || count < 1 || count > maxDim {
		cfg.fail(field, "%s is not a size from 1 to %d", short(value), maxDim)
		return 1
	}
	return count
}

// sizeOr reads a number. It returns other if the field is null or 0, as Python's "a or b".
func (cfg *config) sizeOr(field string, other int64) int64 {
	if cfg.null(field) || string(cfg.fields[field]) == "0" {
		return other
	}
	return cfg.size(field)
}

// count reads a number of blocks, which may be 0.
func (cfg *config) count(field string) int {
	count, err := strconv.Atoi(string(cfg.fields[field]))
	if err != nil || count < 0 || count > maxCount {
		cfg.fail(field, "%s is not a number from 0 to %d", short(cfg.fields[field]), maxCount)
		return 0
	}
	return count
}

// number reads any number.
func (cfg *config) number(field string) float64 {
	number, err := strconv.ParseFloat(string(cfg.fields[field]), 64)
	if err != nil {
		cfg.fail(field, "%s is not a number", short(cfg.fields[field]))
		return 1
	}
	return number
}

// null reports whether a field has no value.
func (cfg *config) null(field string) bool {
	return len(cfg.fields[field]) == 0 || cfg.fields[field].Kind() == 'n'
}

// flag reads true or false.
func (cfg *config) flag(field string) bool {
	switch string(cfg.fields[field]) {
	case "true":
		return true
	case "false", "null", "":
		return false
	}
	cfg.fail(field, "%s is neither true nor false", short(cfg.fields[field]))
	return false
}

// items reads the values of a list.
func (cfg *config) items(field string) []jsontext.Value {
	var items []jsontext.Value
	if err := json.Unmarshal(cfg.fields[field], &items); err != nil || len(items) > maxCount {
		cfg.fail(field, "%s is not a list of at most %d values", short(cfg.fields[field]), maxCount)
		return nil
	}
	return items
}

// sizes reads a list of sizes that is not empty.
func (cfg *config) sizes(field string) []int64 {
	var sizes []int64
	for i, item := range cfg.items(field) {
		sizes = append(sizes, cfg.sizeOf(fmt.Sprintf("%s[%d]", field, i), item))
	}
	if len(sizes) == 0 {
		cfg.fail(field, "the list is empty")
		return []int64{1}
	}
	return sizes
}

// sizesFor reads a list of as many sizes as there are blocks. A single size counts for all of them.
func (cfg *config) sizesFor(field string, blocks int) []int64 {
	if cfg.fields[field].Kind() != '[' {
		return slices.Repeat([]int64{cfg.size(field)}, blocks)
	}
	return cfg.forBlocks(field, cfg.sizes(field), blocks)
}

func (cfg *config) forBlocks(field string, sizes []int64, blocks int) []int64 {
	if len(sizes) != blocks {
		cfg.fail(field, "%d values for %d blocks", len(sizes), blocks)
		return slices.Repeat([]int64{1}, blocks)
	}
	return sizes
}

// flags reads as many flags as there are blocks. A single one counts for all.
func (cfg *config) flags(field string, blocks int) []bool {
	if cfg.fields[field].Kind() != '[' {
		return slices.Repeat([]bool{cfg.flag(field)}, blocks)
	}
	var flags []bool
	if err := json.Unmarshal(cfg.fields[field], &flags); err != nil || len(flags) != blocks {
		cfg.fail(field, "%s is not a list of %d switches", short(cfg.fields[field]), blocks)
		return make([]bool, blocks)
	}
	return flags
}

// words reads a list of names.
func (cfg *config) words(field string) []string {
	var words []string
	if err := json.Unmarshal(cfg.fields[field], &words); err != nil || len(words) == 0 || len(words) > maxCount {
		cfg.fail(field, "%s is not a list of names", short(cfg.fields[field]))
	}
	return words
}

// only fails for any other value than those, given as JSON: its effect on the modules is not known
// here.
func (cfg *config) only(field string, values ...string) {
	if value := string(cfg.fields[field]); value != "" && !slices.Contains(values, value) {
		cfg.fail(field, "%s of a %s is not known here (known: %s)", short(cfg.fields[field]), cfg.class, strings.Join(values, ", "))
	}
}

// kinds reads block types and fails for unknown ones.
func (cfg *config) kinds(field string, known ...string) []string {
	words := cfg.words(field)
	for i, word := range words {
		if !slices.Contains(known, word) {
			cfg.fail(fmt.Sprintf("%s[%d]", field, i), "%q is not known here (known: %s)", clip(word), strings.Join(known, ", "))
		}
	}
	return words
}

// short returns a value for a message.
func short(value jsontext.Value) string {
	if len(value) == 0 {
		return "nothing"
	}
	return clip(string(bytes.TrimSpace(value)))
}

func clip(text string) string {
	const longest = 60
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
