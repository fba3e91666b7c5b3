package trainer

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed files.json
var fileTable []byte

// kind is a training program's configuration file.
type kind struct {
	Preset string `json:"preset"`
	// Marks are keys that no other program's file has.
	Marks []string `json:"marks"`
	// Keys are those that devmap reads, by path; their values "*" stand for any,
	// which is then the field's own.
	Keys map[string]map[string][]Set `json:"keys"`
	// Ignored keys change no memory on a GPU.
	Ignored []string `json:"ignored"`
}

var kinds = sync.OnceValue(func() []kind {
	var out []kind
	if err := json.Unmarshal(fileTable, &out); err != nil {
		panic(err) // the table is part of the program
	}
	for i := range out[1:] { // the first has what all share
		out[i+1].Ignored = append(out[i+1].Ignored, out[0].Ignored...)
	}
	return out[1:]
})

// File is what a configuration file says.
type File struct {
	Preset string
	Sets   []Set
	// Unknown are keys that devmap does not know, with the known key that is
	// nearest, if one is.
	Unknown []string
}

// mostKeys bounds the keys of a file.
const mostKeys = 2000

// Read reads a configuration file, YAML or JSON; nearest finds the known key
// that an unknown one may be.
func Read(file string, text []byte, nearest func(word string, known []string) string) (*File, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	values := make(map[string]string)
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s is no configuration: it has no keys", file)
	}
	if err := flatten(values, "", document.Content[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	of := kindOf(values)
	if of == nil {
		return nil, fmt.Errorf("%s is of no program that devmap reads (%s)", file, strings.Join(programs(), ", "))
	}
	return of.read(file, values, nearest)
}

// flatten lists values by path: fsdp_config.version.
func flatten(values map[string]string, below string, node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := below + key.Value
		if _, twice := values[path]; twice {
			return fmt.Errorf("line %d: the key %q stands twice", key.Line, path)
		}
		if len(values) >= mostKeys {
			return fmt.Errorf("line %d: more than %d keys", key.Line, mostKeys)
		}
		switch value.Kind {
		case yaml.MappingNode:
			values[path] = ""
			if err := flatten(values, path+".", value); err != nil {
				return err
			}
		case yaml.SequenceNode:
			var items []string
			for _, item := range value.Content {
				items = append(items, item.Value)
			}
			values[path] = strings.Join(items, ",")
		case yaml.ScalarNode:
			values[path] = value.Value
			if value.Tag == "!!null" {
				values[path] = "null"
			}
		default:
			return fmt.Errorf("line %d: the value of %q is an alias, which devmap does not follow", value.Line, path)
		}
	}
	return nil
}

// kindOf is the program whose keys a file has most of; nil: none.
func kindOf(values map[string]string) *kind {
	var best *kind
	most := 0
	for i := range kinds() {
		count := 0
		for _, mark := range kinds()[i].Marks {
			if _, ok := values[mark]; ok {
				count++
			}
		}
		if count > most {
			best, most = &kinds()[i], count
		}
	}
	return best
}

func programs() []string {
	var out []string
	for i := range kinds() {
		if name := kinds()[i].Preset; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (of *kind) read(file string, values map[string]string, nearest func(word string, known []string) string) (*File, error) {
	out := &File{Preset: of.Preset}
	var known []string
	for key := range of.Keys {
		known = append(known, key)
	}
	slices.Sort(known)
	for _, key := range known {
		value, ok := values[key]
		if !ok || value == "null" {
			continue
		}
		sets, listed := of.Keys[key][strings.ToLower(value)]
		if !listed {
			sets, listed = of.Keys[key]["*"]
		}
		if !listed {
			return nil, fmt.Errorf("%s: %s is %q, which devmap does not count", file, key, value)
		}
		for _, set := range sets {
			if set.Value == "*" {
				set.Value = value
			}
			set.Source = key
			out.Sets = append(out.Sets, set)
		}
	}
	// What others depend on comes first.
	slices.SortStableFunc(out.Sets, func(a, b Set) int { return rank(a.Field) - rank(b.Field) })
	for key := range values {
		base, _, _ := strings.Cut(key, ".")
		if slices.Contains(known, key) || slices.Contains(of.Ignored, key) || slices.Contains(of.Ignored, base) || values[key] == "" && base == key {
			continue
		}
		name := fmt.Sprintf("%q", key)
		if near := nearest(key, append(slices.Clone(known), of.Ignored...)); near != "" {
			name += " (did you mean " + near + "?)"
		}
		out.Unknown = append(out.Unknown, name)
	}
	slices.Sort(out.Unknown)
	return out, nil
}

// rank orders the fields that others depend on before them.
func rank(field string) int {
	switch field {
	case "strategy":
		return 0
	case "lora_rank":
		return 1
	}
	return 2
}
