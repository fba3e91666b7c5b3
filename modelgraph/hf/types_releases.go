package hf

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

//go:embed types-releases.txt
var releaseNames string

// release is a release of Transformers.
type release struct {
	name string
	at   int // its place in releases
	// span are the releases with all lines that were read, a bit each; nil if not counted.
	span *uint64
	// own is the table of a library that has one release here; nil for Transformers.
	own *embedded.Table
}

// releases are the releases with a table, the oldest first.
var releases = func() (all []*release) {
	for i, name := range strings.Fields(releaseNames) {
		all = append(all, &release{name: name, at: i})
	}
	return all
}()

var newest = releases[len(releases)-1]

// alone is the release with a separate span.
func (in *release) alone() *release {
	span := uint64(1<<len(releases) - 1)
	return &release{name: in.name, at: in.at, span: &span}
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
