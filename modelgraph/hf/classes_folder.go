package hf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// unprovenError is a folder of a family without a reader. Its files do not prove which modules the
// framework makes of them, so a device map of their names might lack some.
type unprovenError struct{ Dir, Reason string }

// Error implements error.
func (err *unprovenError) Error() string {
	return fmt.Sprintf("%s: %s: a device map could lack modules that the framework makes; describe the model in a model.json", err.Dir, err.Reason)
}

// listed joins the files of a folder with the table's line of a class without a reader: names,
// ties, no-split modules. Its operations are not known.
type listed struct {
	class *listedClass
	needs []string // patterns that some tensor of the files must have
	ck    *safetensors.Checkpoint
	dir   string
	in    string // the release of Transformers
	tied  bool   // word embeddings are
	names *loading
	pats  *paths.Patterns
	split map[string]bool // patterns of modules that are not

	tensors  map[string]*moduleTensor // by name in the module tree
	modules  map[string]bool          // patterns of modules with a stored tensor
	counted  map[string][]string      // by pattern that ends in a star: the names it has
	ties     [][]string
	warnings []string
	strange  tally // stored, and not known of the class
}

// moduleTensor is a tensor of the module tree and its stored pieces.
type moduleTensor struct {
	name   string
	pieces []*safetensors.Tensor
	like   *moduleTensor // the stored tensor it is tied to, if not stored itself
}

// listedFolder reads a folder by the table of classes.
func listedFolder(dir string, cfg *config, reason string) (*modelgraph.Graph, error) {
	ck, err := named(safetensors.ReadFolder(dir))
	if err != nil {
		return nil, err
	}
	class, err := classOf(dir, cfg, reason)
	if err != nil {
		return nil, err
	}
	l := &listed{class: class, needs: class.Params[:class.Default], ck: ck, dir: dir, in: tables.Releases[0].Name, tied: tiesWords(cfg, class)}
	return l.graph(cfg, reason)
}

// graph joins the files with the class.
func (l *listed) graph(cfg *config, reason string) (*modelgraph.Graph, error) {
	l.split, l.tensors, l.modules, l.counted = make(map[string]bool), make(map[string]*moduleTensor), make(map[string]bool), make(map[string][]string)
	if err := l.read(); err != nil {
		return nil, err
	}
	graph, err := modelgraph.New(folderName(l.dir), l.layers(), l.ties)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.dir, err)
	}
	graph.Source, graph.Class, graph.DType = l.dir, l.class.Class, mostlyFloat(graph)
	graph.Unknown = []string{fmt.Sprintf("%s: what layers of a %s compute", reason, l.class.Class)}
	if graph.Quantized = quantMethod(cfg, graph); graph.Quantized != "" {
		l.warnings = append(l.warnings, fmt.Sprintf("parameters are counted as the elements that are stored: %s tensors and their tables, of which some hold several weights an element", graph.Quantized))
	}
	graph.Warnings = slices.Concat(l.ck.Warnings, l.warnings, []string{fmt.Sprintf(
		"%s: the modules are those of %s in Transformers %s; only what is stored is counted, no activations", reason, l.class.Class, l.in)})
	return graph, nil
}

// classOf finds the class that architectures names.
func classOf(dir string, cfg *config, reason string) (*listedClass, error) {
	names, modelType := cfg.strs("architectures"), cfg.name("model_type")
	if err := cfg.fault(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &unprovenError{dir, reason + ", and " + ConfigName + " names no class in architectures"}
	}
	if own := ownCode(cfg, names[:1]); own != "" {
		return nil, &unprovenError{dir, fmt.Sprintf("%s, and auto_map says that the model is a %q of its own code", reason, clipName(own))}
	}
	class := findClass(names[0], modelType)
	if class == nil {
		return nil, &unprovenError{dir, fmt.Sprintf("%s, and %q with model_type %q is not a class of Transformers 5.17 whose modules are known here", reason, clipName(names[0]), clipName(modelType))}
	}
	return class, nil
}

// tiesWords reports whether word embeddings are tied: by the config of the model or of a part of
// it, else by the class's default.
func tiesWords(cfg *config, class *listedClass) bool {
	subs := []*config{cfg}
	for _, key := range []string{"text_config", "llm_config", "language_config", "decoder", "encoder"} {
		subs = append(subs, cfg.sub(key))
	}
	said := false
	for _, sub := range subs {
		if sub.has("tie_word_embeddings") {
			if sub.bool(true, "tie_word_embeddings") {
				return true
			}
			said = true
		}
	}
	return !said && class.Tied
}

// read places every stored tensor, then adds the framework's other modules.
func (l *listed) read() error {
	buffers := slices.Sorted(maps.Keys(l.class.Buffers))
	l.pats = paths.NewPatterns(slices.Concat(l.class.Params, buffers))
	for _, name := range l.class.NoSplit {
		l.split[name] = true
	}
	l.names = &loading{prefix: l.class.Prefix, renames: []rename{l.rename}}
	l.names.add(rulesOf("legacy"), nil)
	l.names.leave(l.class.Ignored)
	l.names.ignore = append(l.names.ignore, ignoreInvFreq, ignorePositionIDs)
	for i := range l.ck.Tensors {
		if err := l.place(&l.ck.Tensors[i]); err != nil {
			return err
		}
	}
	if err := l.tie(); err != nil {
		return err
	}
	if err := l.complete(buffers); err != nil {
		return err
	}
	if total := l.storedBytes(); 100*l.strange.bytes > total {
		return &unprovenError{l.dir, fmt.Sprintf("%d checkpoint tensors, %d of %d bytes, are not known of %s in Transformers %s: %s", l.strange.count, l.strange.bytes, total, l.class.Class, l.in, l.strange.names())}
	}
	if l.strange.count > 0 {
		l.warnings = append(l.warnings, fmt.Sprintf("%d checkpoint tensors (%d bytes) are not known of %s: they are counted, and may be left out: %s",
			l.strange.count, l.strange.bytes, l.class.Class, l.strange.names()))
	}
	return nil
}

func (l *listed) rename(name string) string {
	if to, ok := l.class.Renames[paths.Starred(name)]; ok {
		return paths.Filled(to, paths.Numbers(name))
	}
	return name
}

func (l *listed) has(name string) bool { return l.pats.Match(name) != "" }

// place finds the tensor that a stored one becomes.
func (l *listed) place(t *safetensors.Tensor) error {
	place, ok := l.names.module(t.Name, l.has)
	switch {
	case ok:
		return l.hold(place.name, t)
	case l.names.ignored(place.name):
		return nil
	}
	for _, base := range weightsBehind(t.Name) { // next to the weight whose storage it is part of
		if s, ok := l.names.module(base, l.has); ok {
			return l.hold(paths.Parent(s.name)+"."+storageLeaf(t.Name), t)
		}
	}
	// A bias that the config switches on lies in a module that is known.
	if up, last := paths.CutLast(t.Name); last == "bias" {
		if s, ok := l.names.module(up+".weight", l.has); ok {
			return l.hold(paths.Parent(s.name)+".bias", t)
		}
	}
	if l.class.Converted {
		return &unprovenError{l.dir, fmt.Sprintf("%q is not a name that %s in Transformers %s is known to read", clipName(t.Name), l.class.Class, l.in)}
	}
	l.strange.add(t.Name, t.Bytes())
	return l.hold(t.Name, t)
}

// weightsBehind are the weights whose quantised storage a name may be part of.
func weightsBehind(name string) []string {
	if base, _, ok := strings.Cut(name, ".quant_state."); ok {
		return []string{base}
	}
	var out []string
	for _, suffix := range quantisedSuffixes {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			out = append(out, base, base+".weight")
		}
	}
	return out
}

// storageLeaf is a distinct name next to the weight's: the last three parts of the stored name,
// with the expert's number.
func storageLeaf(stored string) string {
	parts := strings.Split(stored, ".")
	return strings.Join(parts[max(0, len(parts)-3):], "_")
}

// hold records a stored tensor under its name in the module tree.
func (l *listed) hold(name string, t *safetensors.Tensor) error {
	tensor := l.tensors[name]
	if tensor == nil {
		tensor = &moduleTensor{name: name}
		l.tensors[name] = tensor
		l.note(name)
	} else if _, joined := l.class.Renames[paths.Starred(t.Name)]; !joined {
		return &unprovenError{l.dir, fmt.Sprintf("%q and %q are both read as %q", clipName(tensor.pieces[0].Name), clipName(t.Name), clipName(name))}
	}
	tensor.pieces = append(tensor.pieces, t)
	return nil
}

// note remembers the modules and the list members on a name's path.
func (l *listed) note(name string) {
	at := 0
	nodes := l.pats.Walk(name)
	for i, node := range nodes {
		end := strings.IndexByte(name[at:], '.')
		if end < 0 {
			break
		}
		at += end
		if prefix := name[:at]; node.IsStar() && !slices.Contains(l.counted[node.Path], prefix) {
			l.counted[node.Path] = append(l.counted[node.Path], prefix)
		}
		if i == strings.Count(name, ".")-1 {
			l.modules[node.Path] = true
		}
		at++
	}
}

// unitOf is the outermost module on a name's path that is not split, or "".
func (l *listed) unitOf(name string) string {
	parts := strings.Split(name, ".")
	for i, node := range l.pats.Walk(name) {
		if l.split[node.Path] {
			return strings.Join(parts[:i+1], ".")
		}
	}
	return ""
}

// inUnit is the pattern of the no-split module around a pattern.
func (l *listed) inUnit(pattern string) string {
	for i := range len(pattern) + 1 {
		if (i == len(pattern) || pattern[i] == '.') && l.split[pattern[:i]] {
			return pattern[:i]
		}
	}
	return ""
}
