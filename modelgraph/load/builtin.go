package load

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// builtIn reads the built-in config of that name, in any case of letters:
// ORG/NAME, or NAME if one of the two gives no ORG.
func builtIn(name string, fsys fs.FS) (graph *modelgraph.Graph, ok bool, err error) {
	files := builtInFiles(fsys)
	entry := ""
	for e := range files {
		switch {
		case strings.EqualFold(e, name):
			entry = e
		case entry != "" && strings.EqualFold(entry, name):
		case strings.EqualFold(lastPart(e), lastPart(name)) && (!strings.Contains(e, "/") || !strings.Contains(name, "/")):
			if entry == "" || e < entry {
				entry = e
			}
		}
	}
	if entry == "" {
		return nil, false, nil
	}
	data, err := fs.ReadFile(fsys, files[entry])
	if err != nil {
		return nil, true, fmt.Errorf("reading the built-in config of %s: %w", entry, err)
	}
	if graph, err = fromBytes(files[entry], data); err != nil {
		return nil, true, err
	}
	graph.Name = lastPart(entry)
	return graph, true, nil
}

// Names are those of the built-in configs, sorted.
func Names(fsys fs.FS) []string { return slices.Sorted(maps.Keys(builtInFiles(fsys))) }

// builtInFiles maps names to the files that describe them.
func builtInFiles(fsys fs.FS) map[string]string {
	files := make(map[string]string)
	if fsys == nil {
		return files
	}
	// A folder that cannot be walked counts as absent.
	_ = fs.WalkDir(fsys, ".", func(prefix string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(prefix) != ".json" {
			return nil //nolint:nilerr // as above
		}
		name := strings.TrimSuffix(prefix, ".json")
		if path.Base(prefix) == "config.json" {
			name = path.Dir(prefix)
		}
		files[name] = prefix
		return nil
	})
	return files
}

// nearest are up to five built-in names that are like name, nearest first.
func nearest(name string, fsys fs.FS) []string {
	return modelgraph.Nearest(strings.ToLower(lastPart(name)), Names(fsys), 5, math.MaxInt)
}
