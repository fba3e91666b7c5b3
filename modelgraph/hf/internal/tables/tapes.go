package tables

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
)

// The memory of steps of the newest release's classes, layer by layer, as functions of config
// fields and sides of tensors: fixtures/oracle/tapes.py finds it.
var (
	//go:embed types-tapes.jsonl.gz
	typeTapesGz   []byte
	typeTapeTable = embedded.New("types-tapes.jsonl.gz", typeTapesGz)
)

// oldestTaped is the oldest release that tapes were compared with.
const oldestTaped = "5.17"

// typeTapes is the line of a model class.
type typeTapes struct {
	Class  string `json:"class"`
	Config string `json:"config"` // its config class
	// Kind is that of a step ([learned.Asked]), "long" for lengths above windows, or "eager". Eager:
	// scores are in memory, also if the class has no other attention.
	Kind  string `json:"kind"`
	Eager bool   `json:"eager"`
	// Release is the one that it holds for; empty: the newest, and others if a mode is as in older ones.
	Release string `json:"release"`
	// Sizes are those of storages: sums of products, each [factor of the workload by its index,
	// number, atoms…]. An atom is $field, or tensor/side; a slash before it divides. A size may also
	// be [a kernel's rule, indexes of its sizes…].
	Sizes [][]any `json:"sizes"`
	// Parts are the steps of layers, each a [tapePart] for some modes.
	Parts []jsontext.Value    `json:"parts"`
	Modes map[string]tapeMode `json:"modes"`
	// Requests are the storages of a step in order, for a caller who keeps the loss alone ([requestsOf]), and
	// those of one sequence if a mode holds from two on.
	Requests map[string]jsontext.Value `json:"requests"`
	// Inside is the field of the model that a text runs through and a dot, empty if it is the whole.
	Inside string `json:"inside"`
	// Kinds are the fields that have a text for each layer.
	Kinds []string `json:"kinds"`
	// Pins are values of fields, Like whether fields are above 0, Grouped whether heads share keys
	// and values, as in all builds.
	Pins    map[string]any  `json:"pins"`
	Like    map[string]bool `json:"like"`
	Grouped *bool           `json:"grouped"`
	// Last are fields with the number of the last layer.
	Last []string `json:"last"`
	// Longer are fields, such as windows, and whether lengths are above them.
	Longer map[string]bool `json:"longer"`
}

// A tapeMode is a kind of step.
type tapeMode struct {
	Batch int64 `json:"batch"` // the least
	// Older: release 5.17 ran the same step, so that those between do.
	Older bool `json:"older"`
	// Layers are [name with stars, [place, kind of the layer, part]…], in execution order.
	Layers [][]any `json:"layers"`
}

// A tapeSum is a list of [index of a size, number of storages], written "3 5x2" for a storage of
// size 3 and two of size 5. The lines have thousands, which JSON's own lists would make slow.
type tapeSum [][2]int64

// UnmarshalText implements [encoding.TextUnmarshaler].
func (sum *tapeSum) UnmarshalText(text []byte) error {
	for one := range bytes.FieldsSeq(text) {
		index, count, several := bytes.Cut(one, []byte("x"))
		at, number := int64(decimals(string(index))), int64(1)
		if several {
			number = int64(decimals(string(count)))
		}
		*sum = append(*sum, [2]int64{at, number})
	}
	return nil
}

// tapePart is a [learned.Part] of sums.
type tapePart struct {
	Saved    tapeSum      `json:"saved"`
	Returned tapeSum      `json:"returned"`
	Lasting  tapeSum      `json:"lasting"`
	Forward  []tapeMoment `json:"forward"`
	Backward []tapeMoment `json:"backward"`
	// Accumulate is left out if it is as Backward.
	Accumulate []tapeMoment       `json:"accumulate"`
	Copied     map[string]tapeSum `json:"copied"`
	Products   bool               `json:"products"`
}

type tapeMoment struct {
	Bytes tapeSum            `json:"bytes"`
	Past  map[string]tapeSum `json:"past"`
}

// tapes are the lines of a graph's class. They are read when a plan asks for them.
type tapes struct {
	in     *Release
	tree   *Tree
	class  *Class
	layers []modelgraph.Layer
	reader bool // rules have the operations: a tape is only for a model on one GPU
	lock   sync.Mutex
	lines  map[string][]*taping // by kind
	steps  map[stepKey]*tapedStep
}

type stepKey struct {
	line   *taping
	step   string
	rank   int64
	padded int64
	one    bool // sequence, with other copies than several have
}

// tapedStep is an evaluated step. Tapes hold from a number of sequences on, requests for one sequence too.
type tapedStep struct {
	tapes    []*learned.Tape
	least    int64
	requests func() *learned.Requests
}

// AddTapes gives layers the memory of a release's steps, if the table has lines of the class.
func AddTapes(in *Release, tree *Tree, class *Class, layers []modelgraph.Layer, reader bool) {
	all := &tapes{in: in, tree: tree, class: class, layers: slices.Clone(layers), reader: reader, lines: make(map[string][]*taping), steps: make(map[stepKey]*tapedStep)}
	for i := range layers {
		layers[i].Learned = learned.Steps{Source: all, Layer: i, Alone: reader}
	}
}

// Tapes implements [learned.Source].
func (all *tapes) Tapes(asked learned.Asked) []*learned.Tape {
	if step := all.step(asked); step != nil && asked.Batch >= step.least {
		return step.tapes
	}
	return nil
}

// Requests implements [learned.Source].
func (all *tapes) Requests(asked learned.Asked) *learned.Requests {
	if step := all.step(asked); step != nil && step.tapes != nil {
		return step.requests()
	}
	return nil
}

// step finds the line that holds for a step.
func (all *tapes) step(asked learned.Asked) *tapedStep {
	if all.reader && !asked.Alone || Newer(oldestTaped, all.in.Name) {
		return nil
	}
	all.lock.Lock()
	defer all.lock.Unlock()
	kinds := []string{asked.Kind}
	if asked.Kind == "" {
		kinds = []string{"", "long"}
		if asked.Eager { // learned in 16 bits only
			kinds = append(kinds, "eager")
		}
	}
	for _, kind := range kinds {
		lines, known := all.lines[kind]
		if !known {
			lines = all.read(kind)
			all.lines[kind] = lines
		}
		for _, t := range lines {
			mode := t.line.Modes[asked.Step]
			if !t.runs(&mode) || asked.Seq < t.least || asked.Seq > t.most || asked.Batch < 1 || asked.Eager && !t.line.Eager {
				continue
			}
			return all.evaluated(t, &asked, mode)
		}
	}
	return nil
}

// evaluated is a step by a line that holds for it, evaluated once.
func (all *tapes) evaluated(t *taping, asked *learned.Asked, mode tapeMode) *tapedStep {
	t.seq = asked.Seq
	padded, _ := t.side("padded")
	key := stepKey{t, asked.Step, asked.Rank, int64(padded), asked.Batch < mode.Batch}
	if step, known := all.steps[key]; known {
		return step
	}
	step := &tapedStep{least: max(1, mode.Batch)}
	if one := t.line.Modes[asked.Step+" 1"]; key.one && len(one.Layers) > 0 {
		mode.Layers, step.least = one.Layers, 1
	}
	step.tapes = t.step(&mode, asked.Rank)
	at := *t // at this rank
	step.requests = sync.OnceValue(func() *learned.Requests { return at.requests(key.step, key.one) })
	all.steps[key] = step
	return step
}

// taping evaluates a line for a config.
type taping struct {
	in     *Release
	line   *typeTapes
	of     *evaluation
	sizes  learned.Storages // one of each
	rank   int64            // of adapters
	layers []modelgraph.Layer
	index  map[string]int
	parts  map[int64]*tapePart         // by index
	shared map[*tapePart]*learned.Part // of parts that name no layer by a distance
	least  int64                       // tokens of a sequence
	most   int64
	seq    int64          // of the step asked for
	counts map[string]int // layers of lists
	kinds  []string       // of these
}

// runs reports that a line has a kind of step of the release.
func (t *taping) runs(mode *tapeMode) bool {
	return len(mode.Layers) > 0 && (t.line.Release == t.in.Name || t.line.Release == "" && (mode.Older || t.in.At == Newest.At))
}

// read decodes the lines of a kind that fit the config.
func (all *tapes) read(kind string) (lines []*taping) {
	for text := range typeTapeTable.Lines(fmt.Sprintf(`{"class":%q,"config":%q,"kind":%q,`, all.class.Class, all.class.Config, kind)) {
		line := new(typeTapes)
		typeTapeTable.Read(text, line)
		of := &evaluation{object: all.tree.Root, rules: all.class.Rules, known: make(map[string]any)}
		t := &taping{in: all.in, line: line, of: of, layers: all.layers, index: make(map[string]int)}
		if computed(all.tree, all.class, of) == nil && len(of.contested) == 0 && t.fits() {
			lines = append(lines, t)
		}
	}
	return lines
}

// step evaluates a step of the line; nil if it does not hold.
func (t *taping) step(mode *tapeMode, rank int64) []*learned.Tape {
	t.rank, t.parts, t.shared, t.counts = rank, make(map[int64]*tapePart), make(map[*tapePart]*learned.Part), make(map[string]int)
	if !t.measure() || !t.count() {
		return nil
	}
	order, ok := t.order(mode.Layers)
	if !ok {
		return nil
	}
	out := make([]*learned.Tape, len(t.layers))
	for rank, one := range order {
		out[one.layer] = &learned.Tape{Rank: rank, Part: t.placed(t.layers[one.layer].Name, one.part)}
	}
	return out
}

// fits reports a config like the built ones.
func (t *taping) fits() bool {
	for path, want := range t.line.Pins {
		if v, ok := t.of.object.get(path); ok && !DeepEqual(v, want) {
			return false
		}
	}
	for path, some := range t.line.Like {
		v, _ := t.of.find(path)
		if rate, _ := v.(float64); rate > 0 != some {
			return false
		}
	}
	layers, _ := t.side(t.line.Inside + "num_hidden_layers")
	another := func(path string) bool { at, _ := t.side(path); return at != layers-1 }
	if !t.bounded() || slices.ContainsFunc(t.layers, t.otherKernel) || slices.ContainsFunc(t.line.Last, another) {
		return false
	}
	for _, path := range t.line.Kinds {
		v, _ := t.of.find(path)
		list, _ := v.([]any)
		for i, one := range list {
			kind, _ := one.(string)
			if to, ok := legacyLayers[kind].(string); ok { // builds have the new names
				kind = to
			}
			if i < len(t.kinds) {
				t.kinds[i] += " " + kind
			} else {
				t.kinds = append(t.kinds, kind)
			}
		}
	}
	if t.line.Grouped != nil {
		groups, _ := t.of.find(t.line.Inside + "num_key_value_heads")
		heads, _ := t.of.find(t.line.Inside + "num_attention_heads")
		if DeepEqual(groups, heads) == *t.line.Grouped {
			return false
		}
	}
	return t.of.err == nil
}

// otherKernel reports heads that cuDNN's attention does not run (devmap.measure, attention.py). Builds
// had Gemma 4's wide heads of full attention as its config class has them.
func (t *taping) otherKernel(layer modelgraph.Layer) bool {
	attention, _ := layer.Op.(modelgraph.Attention)
	wide, _ := number(t.of.object.byDefault(t.line.Inside + "global_head_dim"))
	return int64(wide) != attention.HeadDim && ((attention.HeadDim|attention.ValueDim)%8 != 0 || max(attention.HeadDim, attention.ValueDim) > 256)
}

// bounded finds the lengths that the tape holds for; false if the config has a window and the
// builds had none.
func (t *taping) bounded() bool {
	for _, path := range []string{"sliding_window", "attention_chunk_size"} {
		path = t.line.Inside + path
		v, _ := t.of.find(path)
		if _, known := t.line.Longer[path]; !known && truth(v) { // no build had masks of a window
			return false
		}
	}
	t.most = math.MaxInt64
	for path, above := range t.line.Longer {
		size, ok := t.side(path)
		switch {
		case !ok:
			return false
		case above:
			t.least = max(t.least, int64(size))
		default:
			t.most = min(t.most, int64(size)-1)
		}
	}
	return true
}

// side is the number of a field, or of a side of tensors that the forward works out (padding in tapes.py).
func (t *taping) side(path string) (float64, bool) {
	of := func(path string) float64 {
		v, _ := t.of.find(path)
		if list, _ := v.([]any); len(list) > 0 && !slices.ContainsFunc(list, func(one any) bool { return !DeepEqual(one, list[0]) }) {
			v = list[0]
		}
		n, _ := number(v)
		return n
	}
	if size := of(path); size > 0 {
		return size, true
	}
	window := of("attention_window")
	padded := math.Ceil(float64(t.seq)/window) * window
	side := map[string]float64{
		"padded": padded, "padded+window": padded + window, "overlapped": 2*padded - window, "attention_window+1": window + 1,
		"half_window": window / 2, "half_window+1": window/2 + 1, "half_window-1": window/2 - 1, "padded_band": 3*window/2 + 2, "padded_band-1": 3*window/2 + 1,
	}[path]
	if path == "full_attention+1" { // BigBirdModel.forward
		side = (5+2*of("num_random_blocks"))*of("block_size") + 1
	}
	return side, side > 0
}

// measure finds the values of the basis.
func (t *taping) measure() bool {
	sides := make(map[string]float64)
	for i := range t.layers {
		layer := &t.layers[i]
		for _, tensors := range [][]modelgraph.Tensor{layer.Params, layer.Buffers} {
			for j := range tensors {
				name := paths.Starred(modelgraph.FullName(layer.Name, tensors[j].Name))
				for at, side := range tensors[j].Shape {
					key := name + "/" + strconv.Itoa(at)
					if old, ok := sides[key]; ok && old != float64(side) {
						side = -1
					}
					sides[key] = float64(side)
				}
			}
		}
	}
	t.sizes = make(learned.Storages, len(t.line.Sizes))
	for i, one := range t.line.Sizes {
		size := &t.sizes[i]
		if rule, ruled := one[0].(string); ruled {
			size.Rule = rule
			for _, index := range one[1:] {
				size.Of = append(size.Of, t.sizes[whole(index)].Size)
			}
			continue
		}
		sum, ok := t.sum(one, sides)
		if !ok {
			return false
		}
		size.Size = sum
	}
	return true
}

// count finds how many layers each list has. False: a list has one layer, which is both the first and the
// last, and no part is for that.
func (t *taping) count() bool {
	runs := make(map[any]bool)
	for _, mode := range t.line.Modes {
		for _, row := range mode.Layers {
			runs[row[0]] = true
		}
	}
	for i := range t.layers {
		name := t.layers[i].Name
		t.index[name] = i
		if list, pattern := stem(name); list != "" && runs[pattern] {
			t.counts[list] = max(t.counts[list], numbersIn(name)[0]+1)
		}
	}
	return !slices.Contains(slices.Collect(maps.Values(t.counts)), 1)
}
