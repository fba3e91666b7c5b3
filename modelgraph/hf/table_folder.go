package hf

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// tableFolder reads a folder by the table of a release. If the files have exactly the tensors of the
// table's model of the config, or its operations are reviewed, that is the graph. Else it is read by
// the names that its classes can have.
func (cfg *config) tableFolder(in *release, dir, reason string) (*modelgraph.Graph, error) {
	ck, err := named(safetensors.ReadFolder(dir))
	if err != nil {
		return nil, err
	}
	tree, class, err := cfg.treeOf(in)
	if err == nil {
		graph, fault := cfg.tableGraph(in, tree, class, folderName(dir), dir)
		if fault != nil {
			return nil, fault
		}
		graph.Folder = dir
		out, assigned, fault := assign(graph, cfg, ck)
		if tree.reviewed && fault != nil {
			return nil, fault
		}
		if tree.reviewed || fault == nil && assigned.exact() {
			out.Warnings = slices.DeleteFunc(out.Warnings, func(word string) bool { return strings.Contains(word, fromConfigAlone) })
			return out, nil
		}
	}
	if class == nil {
		return listedFolder(dir, cfg, reason)
	}
	l, err := cfg.listed(in, dir, class, ck)
	if err != nil {
		return nil, err
	}
	return l.graph(cfg, reason)
}

// listed is a class of the table as names that its tensors can have.
func (cfg *config) listed(in *release, dir string, class *typeClass, ck *safetensors.Checkpoint) (*listed, error) {
	kind := cfg.name("model_type")
	lines := findClass(class.Class, kind) // rules of stored names
	if lines == nil {
		lines = &listedClass{Class: class.Class, Type: kind, Prefix: classNames(class.Class, kind).Prefix, Tied: true}
	}
	names, err := in.names(cfg.file, class, plainMembers(cfg), ck)
	if names == nil {
		return nil, err
	}
	lines.Params, lines.Buffers, lines.NoSplit, lines.Ties, lines.AlwaysTied = names.params, names.buffers, names.whole(), names.mayTie, names.tied
	l := &listed{class: lines, ck: ck, dir: dir, in: in.name, tied: tiesWords(cfg, lines)}
	for _, pattern := range lines.Params {
		if names.needs[pattern] {
			l.needs = append(l.needs, pattern)
		}
	}
	return l, nil
}

// storedBytes are the bytes of all tensors in the files.
func (l *listed) storedBytes() (total int64) {
	for i := range l.ck.Tensors {
		total += l.ck.Tensors[i].Bytes()
	}
	return total
}
