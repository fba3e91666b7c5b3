package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// choose sets the release of the reading: the user's, else the config's transformers_version if it
// has a table, else the newest.
func (cfg *config) choose(asked []string) error {
	version := cfg.lenient("transformers_version")
	if cfg.shared.asked = len(asked) > 0 && asked[0] != ""; cfg.shared.asked {
		version = asked[0]
	}
	at := slices.IndexFunc(tables.Releases, func(r *tables.Release) bool { return version == r.Name || strings.HasPrefix(version, r.Name+".") })
	switch {
	case cfg.shared.asked && at < 0:
		return &modelgraph.SyntaxError{File: cfg.file, Place: "transformers", Msg: fmt.Sprintf(
			"%q is no release that has a table: they are of %s to %s; give one of those, or none for the newest", clipName(version), tables.Releases[0].Name, tables.Newest.Name)}
	case at < 0:
		at = tables.Newest.At
	}
	cfg.shared.in = tables.Releases[at].Alone()
	return nil
}

// since reports a release from a version on.
func (cfg *fieldSet) since(version string) bool { return !tables.Newer(version, cfg.shared.in.Name) }

// drift notes that other releases read the config differently.
func (cfg *fieldSet) drift(what string) {
	if !cfg.shared.asked {
		cfg.shared.drifts = append(cfg.shared.drifts, fmt.Sprintf("the answer is that of Transformers %s; %s (--transformers selects one)", cfg.shared.in.Name, what))
	}
}

// newerNote warns of a config newer than every table.
func newerNote(cfg *config) string {
	version := cfg.lenient("transformers_version")
	if !tables.Newer(version, tables.Newest.Name) {
		return ""
	}
	return fmt.Sprintf("transformers_version: %q is newer than the newest table, of %s: a newer release may build other tensors; the folder with its safetensors files has them", clipName(version), tables.Newest.Name)
}

// depth is the number of a tower's layers, which Transformers 5.23 calls num_hidden_layers too.
func (cfg *config) depth(def int64) int64 {
	depth := cfg.count(def, "depth")
	if !cfg.said("num_hidden_layers") {
		return depth
	}
	if layers := cfg.count(def, "num_hidden_layers"); cfg.since("5.23") {
		return layers
	}
	return depth
}

// lenient is a text of the config, empty if there is none.
func (cfg *fieldReader) lenient(name string) string {
	v := cfg.members[name]
	if v.Kind() != '"' {
		return ""
	}
	return strings.Trim(string(v), `"`)
}
