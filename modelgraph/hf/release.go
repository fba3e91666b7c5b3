package hf

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

//go:embed types-releases.txt
var releaseNames string

// release is a release of Transformers.
type release struct {
	name string
	at   int // its place in releases
	// span are the releases that have all lines that were read, a bit each; nil
	// if none are counted.
	span *uint64
}

// releases are those that have a table, the oldest first.
var releases = func() (all []*release) {
	for i, name := range strings.Fields(releaseNames) {
		all = append(all, &release{name: name, at: i})
	}
	return all
}()

var newest = releases[len(releases)-1]

// alone is the release with a span of its own.
func (in *release) alone() *release {
	span := uint64(1<<len(releases) - 1)
	return &release{in.name, in.at, &span}
}

// newer compares the first two numbers of versions.
func newer(version, than string) bool {
	var x, y [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &x[0], &x[1]); n < 1 {
		return false
	}
	if n, _ := fmt.Sscanf(than, "%d.%d", &y[0], &y[1]); n < 1 {
		return false
	}
	return slices.Compare(x[:], y[:]) > 0
}

// choose sets the release by which a config is read: the one that the user
// names, else that of the config's transformers_version if it has a table, else
// the newest.
func (cfg *config) choose(asked []string) error {
	version := cfg.lenient("transformers_version")
	if cfg.shared.asked = len(asked) > 0 && asked[0] != ""; cfg.shared.asked {
		version = asked[0]
	}
	at := slices.IndexFunc(releases, func(r *release) bool { return version == r.name || strings.HasPrefix(version, r.name+".") })
	switch {
	case cfg.shared.asked && at < 0:
		return &modelgraph.SyntaxError{File: cfg.file, Place: "transformers", Msg: fmt.Sprintf(
			"%q is no release that has a table: they are of %s to %s; give one of those, or none for the newest", clipName(version), releases[0].name, newest.name)}
	case at < 0:
		at = newest.at
	}
	cfg.shared.in = releases[at].alone()
	return nil
}

// drift notes that other releases make something else of the config.
func (cfg *fieldSet) drift(what string) {
	if !cfg.shared.asked {
		cfg.shared.drifts = append(cfg.shared.drifts, fmt.Sprintf("the answer is that of Transformers %s; %s (--transformers selects one)", cfg.shared.in.name, what))
	}
}

// lenient is a text of the config, empty if there is none.
func (cfg *fieldReader) lenient(name string) string {
	v := cfg.members[name]
	if v.Kind() != '"' {
		return ""
	}
	return strings.Trim(string(v), `"`)
}
