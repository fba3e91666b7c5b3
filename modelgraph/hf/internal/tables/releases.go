// Package tables evaluates the tables of releases of Transformers, and that of diffusers: tensors,
// ties, units, operations and memory of a model class as functions of the fields of its config.
//
// A [Release] has a table. [Release.ClassOf] chooses the line of a class, [Release.Tree] evaluates
// it for a config, and [Tree.Graph] makes the graph. [Release.Names] gives the names that tensors
// in files can have. A field that the table does not explain is an [*Error] with its name.
//
// Package hf reads configs and folders, and chooses the release. This package takes the members of
// a config as JSON's own types, and never a file.
package tables

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

//go:embed types-releases.txt
var releaseNames string

// Release is a release of Transformers.
type Release struct {
	Name string
	At   int // its place in releases
	// span are the releases with all lines that were read, a bit each; nil if not counted.
	span *uint64
	// own is the table of a library that has one release here; nil for Transformers.
	own *embedded.Table
}

// Releases are the releases with a table, the oldest first.
var Releases = func() (all []*Release) {
	for i, name := range strings.Fields(releaseNames) {
		all = append(all, &Release{Name: name, At: i})
	}
	return all
}()

// Newest is the newest release with a table.
var Newest = Releases[len(Releases)-1]

// Alone is the release with a separate span.
func (in *Release) Alone() *Release {
	span := uint64(1<<len(Releases) - 1)
	return &Release{Name: in.Name, At: in.At, span: &span}
}

// Newer compares the first two numbers of versions.
func Newer(version, than string) bool {
	var x, y [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &x[0], &x[1]); n < 1 {
		return false
	}
	if n, _ := fmt.Sscanf(than, "%d.%d", &y[0], &y[1]); n < 1 {
		return false
	}
	return slices.Compare(x[:], y[:]) > 0
}

// componentTypesGz has diffusers' model classes, in the form of [typesGz]: a constructor's
// arguments are a class's config (fixtures/oracle/diffusing.py writes it).
//
//go:embed types-diffusers.jsonl.gz
var componentTypesGz []byte

// Components is the release of diffusers that has a table.
var Components = &Release{Name: "0.42.1", own: embedded.New("types-diffusers.jsonl.gz", componentTypesGz)}
