package zero

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// object is a part of a configuration file.
type object map[string]any

// reader reads a configuration file. The first fault stays.
type reader struct {
	file  string
	fault error
}

// Read reads a configuration file (ds_config.json). It skips sections without effect on GPU memory.
// It refuses unknown keys, and keys with an effect that is not modelled.
func Read(file string, text []byte) (*Settings, error) {
	var root object
	if err := modelgraph.DecodeJSON(file, text, &root, false); err != nil {
		return nil, err
	}
	read := reader{file: file}
	read.known("", root, topKeys)
	zero := read.section(root, "", "zero_optimization")
	if zero == nil {
		return nil, fmt.Errorf("%s: there is no zero_optimization: without a stage DeepSpeed trains whole replicas", file)
	}
	set := Defaults(read.whole(zero, "zero_optimization", "stage", 0, false))
	read.known("zero_optimization", zero, zeroKeys)
	read.zero(zero, &set)
	read.precision(root, &set)
	read.asked(root, &set)
	for _, section := range refused {
		if part := read.section(root, "", section.name); part != nil && read.flag(part, section.name, "enabled", section.enabled) {
			read.fail(section.name, "it changes what GPUs hold in a way that is not modelled (%s)", section.why)
		}
	}
	if read.fault != nil {
		return nil, read.fault
	}
	return &set, nil
}

// fail notes a fault at a place.
func (read *reader) fail(place, format string, args ...any) {
	if read.fault == nil {
		read.fault = fmt.Errorf("%s: %s: %s", read.file, place, fmt.Sprintf(format, args...))
	}
}

func at(place, key string) string {
	if place == "" {
		return key
	}
	return place + "." + key
}

// known refuses keys that DeepSpeed does not have: in zero_optimization it
// refuses them itself, elsewhere it passes over them without a word.
func (read *reader) known(place string, part object, keys []string) {
	var unknown []string
	for key := range part {
		if !slices.Contains(keys, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for _, key := range unknown {
		read.fail(at(place, key), "DeepSpeed has no such key (nearest: %s)", strings.Join(modelgraph.Nearest(key, keys, 2, math.MaxInt), ", "))
	}
}

// section is an object in another; nil if there is none.
func (read *reader) section(part object, place, key string) object {
	switch value := part[key].(type) {
	case nil:
		return nil
	case map[string]any:
		return value
	default:
		read.fail(at(place, key), "%s is no object", show(value))
		return nil
	}
}

// whole is a whole number, written as 500000000 or 5e8, or [Auto] if that is taken.
func (read *reader) whole(part object, place, key string, defaultValue int64, auto bool) int64 {
	value, ok := part[key]
	if !ok || value == nil {
		return defaultValue
	}
	if value == "auto" && auto {
		return Auto
	}
	number, ok := value.(float64)
	if !ok || number != math.Trunc(number) || number < 0 || number > 1<<50 {
		read.fail(at(place, key), "%s: it must be a whole number from 0 to 2^50%s", show(value), orAuto(auto))
		return defaultValue
	}
	return int64(number)
}

// orAuto is what else is taken.
func orAuto(auto bool) string {
	if auto {
		return `, or "auto"`
	}
	return ""
}

// flag is a truth value; "auto" is the default.
func (read *reader) flag(part object, place, key string, defaultValue bool) bool {
	switch value := part[key].(type) {
	case nil:
		return defaultValue
	case bool:
		return value
	default:
		if value != "auto" {
			read.fail(at(place, key), "%s is not true or false", show(value))
		}
		return defaultValue
	}
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "a value"
	}
	return string(text[:min(len(text), 60)])
}
