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
