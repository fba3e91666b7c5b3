package load

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

// The table of hub names among the built-in configs, and the file that makes a folder a diffusion
// pipeline.
const (
	hubFile      = "hub.json"
	pipelineFile = "model_index.json"
)

// builtIn reads the built-in config with a name ([entryOf]).
func builtIn(name string, options Options) (graph *modelgraph.Graph, ok bool, err error) {
	fsys := options.BuiltIn
	entry, err := entryOf(name, fsys)
	if entry == "" || err != nil {
		return nil, err != nil, err
	}
	file := builtInFiles(fsys)[entry]
	if path.Base(file) == pipelineFile {
		return nil, true, &pipelineError{name, entry}
	}
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, true, fmt.Errorf("reading the built-in config of %s: %w", entry, err)
	}
	if graph, err = fromBytes(file, data, options.Transformers); err != nil {
		return nil, true, err
	}
	graph.Name = lastPart(entry)
	if !strings.EqualFold(entry, name) && !strings.EqualFold(lastPart(entry), name) {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("%s is in no local cache: the built-in config of %s is used", name, entry))
	}
	return graph, true, nil
}

// entryOf returns the built-in config with a name, in any case of letters. The name is its own or
// one in the table of hub names, with or without the organisation. A name of another organisation
// is another model.
func entryOf(name string, fsys fs.FS) (string, error) {
	for _, entry := range Names(fsys) {
		if strings.EqualFold(entry, name) || !strings.Contains(name, "/") && strings.EqualFold(lastPart(entry), name) {
			return entry, nil
		}
	}
	hub, err := hubTable(fsys)
	if err != nil {
		return "", err
	}
	for _, entry := range slices.Sorted(maps.Keys(hub)) {
		for _, id := range hub[entry] {
			if strings.EqualFold(id, name) || !strings.Contains(name, "/") && strings.EqualFold(lastPart(id), name) {
				return entry, nil
			}
		}
	}
	return "", nil
}

// hubTable reads the table of hub names, empty if there is none. It has the names of each built-in
// config's model and of tuned models with the same organisation and config.
func hubTable(fsys fs.FS) (map[string][]string, error) {
	if fsys == nil {
		return nil, nil //nolint:nilnil // an empty table
	}
	data, err := fs.ReadFile(fsys, hubFile)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // as above
	}
	var table map[string][]string
	if err := json.Unmarshal(data, &table); err != nil {
		return nil, fmt.Errorf("reading the table of hub names: %w", err)
	}
	return table, nil
}

// Names returns the names of the built-in configs, sorted.
func Names(fsys fs.FS) []string { return slices.Sorted(maps.Keys(builtInFiles(fsys))) }

// builtInFiles maps names to the files that describe them. For a pipeline that is its
// model_index.json.
func builtInFiles(fsys fs.FS) map[string]string {
	files := make(map[string]string)
	if fsys == nil {
		return files
	}
	// A folder that cannot be walked counts as absent.
	_ = fs.WalkDir(fsys, ".", func(prefix string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			if _, none := fs.Stat(fsys, path.Join(prefix, pipelineFile)); none == nil {
				files[prefix] = path.Join(prefix, pipelineFile)
				return fs.SkipDir
			}
		}
		if err != nil || entry.IsDir() || path.Ext(prefix) != ".json" || prefix == hubFile {
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

// nearest returns up to three built-in names similar to name, nearest first. They differ in at most
// half of its letters.
func nearest(name string, fsys fs.FS) []string {
	word, names := strings.ToLower(lastPart(name)), Names(fsys)
	parts, whole := make([]string, len(names)), make(map[string]string, len(names))
	for i, entry := range names {
		parts[i] = strings.ToLower(lastPart(entry))
		whole[parts[i]] = entry
	}
	near := modelgraph.Nearest(word, parts, 3, max(1, len(word)/2))
	for i, part := range near {
		near[i] = whole[part]
	}
	return near
}
