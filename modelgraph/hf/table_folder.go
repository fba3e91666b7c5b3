package hf

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// folderOfTable reads a folder by the table of a release. If the files have exactly the tensors of the
// table's model of the config, or its operations are reviewed, that is the graph. Else it is read by
// the names that its classes can have.
func folderOfTable(in *tables.Release, cfg *config, dir, reason string) (*modelgraph.Graph, error) {
	ck, err := named(safetensors.ReadFolder(dir))
	if err != nil {
		return nil, err
	}
	tree, class, err := treeOfTable(in, cfg)
	if err == nil {
		graph, fault := graphOfTable(in, cfg, tree, class, folderName(dir), dir)
		if fault != nil {
			return nil, fault
		}
		graph.Folder = dir
		out, assigned, fault := assign(graph, cfg, ck)
		if tree.Reviewed && fault != nil {
			return nil, fault
		}
		if tree.Reviewed || fault == nil && assigned.exact() {
			out.Warnings = slices.DeleteFunc(out.Warnings, func(word string) bool { return strings.Contains(word, fromConfigAlone) })
			return out, nil
		}
	}
	if class == nil {
		return listedFolder(dir, cfg, reason)
	}
	l, err := listedByTable(in, cfg, dir, class, ck)
	if err != nil {
		return nil, err
	}
	return l.graph(cfg, reason)
}

// listedByTable is a class of the table as names that its tensors can have.
func listedByTable(in *tables.Release, cfg *config, dir string, class *tables.Class, ck *safetensors.Checkpoint) (*listed, error) {
	kind := cfg.name("model_type")
	lines := findClass(class.Class, kind) // rules of stored names
	if lines == nil {
		lines = &listedClass{Class: class.Class, Type: kind, Prefix: classNames(class.Class, kind).Prefix, Tied: true}
	}
	names, err := in.Names(cfg.file, class, plainMembers(cfg), ck)
	if names == nil {
		return nil, err
	}
	lines.Params, lines.Buffers, lines.NoSplit, lines.Ties, lines.AlwaysTied = names.Params, names.Buffers, names.Whole(), names.MayTie, names.Tied
	l := &listed{class: lines, ck: ck, dir: dir, in: in.Name, tied: tiesWords(cfg, lines)}
	for _, pattern := range lines.Params {
		if names.Needs[pattern] {
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
