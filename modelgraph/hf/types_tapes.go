package hf

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// The memory of a prefill of the newest release's classes, layer by layer, as functions of config
// fields and sides of tensors: fixtures/oracle/tapes.py finds it.
var (
	//go:embed types-tapes.jsonl.gz
	typeTapesGz   []byte
	typeTapeTable = embedded.New("types-tapes.jsonl.gz", typeTapesGz)
)

// typeTapes is the line of a model class.
type typeTapes struct {
	Class  string `json:"class"`
	Config string `json:"config"` // its config class
	// Sizes are those of storages: sums of products, each [factor of the workload by its index,
	// number, atoms…]. An atom is $field, or tensor/side.
	Sizes [][][]any `json:"sizes"`
	// Parts are the steps of layers.
	Parts []tapePart `json:"parts"`
	// Layers are [name with stars, [place, kind of the layer, part]…], in execution order.
	Layers [][]any `json:"layers"`
	// Pins are values of fields, Like whether fields are above 0, Grouped whether heads share keys
	// and values, as in all builds.
	Pins    map[string]any  `json:"pins"`
	Like    map[string]bool `json:"like"`
	Grouped *bool           `json:"grouped"`
	// Longer are fields, such as windows, and whether lengths are above them.
	Longer map[string]bool `json:"longer"`
}

// A tapeSum is a list of [index of a size, number of storages].
type tapeSum [][2]int64

// tapePart is a [learned.Tape] of sums.
type tapePart struct {
	Saved    tapeSum            `json:"saved"`
	Returned tapeSum            `json:"returned"`
	Forward  []tapeMoment       `json:"forward"`
	Copied   map[string]tapeSum `json:"copied"`
	Products bool               `json:"products"`
}

type tapeMoment struct {
	Bytes tapeSum            `json:"bytes"`
	Past  map[string]tapeSum `json:"past"`
}

// taping evaluates a line for a config.
type taping struct {
	line   *typeTapes
	of     *evaluation
	sizes  [][6]int64
	layers []modelgraph.Layer
	index  map[string]int
	least  int64 // tokens of a sequence
	most   int64
	count  int   // layers of the list
	kinds  []any // of these
}

// addTapes gives layers the memory of a prefill, if the line of the class fits the config.
func addTapes(tree *typeTree, class *typeClass, layers []modelgraph.Layer) {
	for text := range typeTapeTable.Lines(fmt.Sprintf(`{"class":%q,"config":%q,`, class.Class, class.Config)) {
		line := new(typeTapes)
		typeTapeTable.Read(text, line)
		of := &evaluation{object: tree.root, rules: class.Rules, known: make(map[string]any)}
		t := &taping{line: line, of: of, layers: layers, index: make(map[string]int)}
		if t.fits() && t.measure(tree) {
			t.addAll()
		}
		return
	}
}

// fits reports a config like the built ones.
func (t *taping) fits() bool {
	for path, want := range t.line.Pins {
		if v, ok := t.of.object.get(path); ok && !deepEqual(v, want) {
			return false
		}
	}
	for path, some := range t.line.Like {
		v, _ := t.of.find(path)
		if rate, _ := v.(float64); rate > 0 != some {
			return false
		}
	}
	if !t.bounded() {
		return false
	}
	if v, ok := t.of.find(layerKinds); ok {
		t.kinds, _ = v.([]any)
	}
	if t.line.Grouped != nil {
		groups, _ := t.of.find("num_key_value_heads")
		heads, _ := t.of.find("num_attention_heads")
		if deepEqual(groups, heads) == *t.line.Grouped {
			return false
		}
	}
	return t.of.err == nil
}

// bounded finds the lengths that the tape holds for; false if the config has a window and the
// builds had none.
func (t *taping) bounded() bool {
	for _, path := range []string{"sliding_window", "attention_chunk_size"} {
		if _, known := t.line.Longer[path]; known {
			continue
		}
		if v, _ := t.of.find(path); truth(v) { // no build had masks of a window
			return false
		}
	}
	t.most = math.MaxInt64
	for path, above := range t.line.Longer {
		v, _ := t.of.find(path)
		size, ok := number(v)
		switch {
		case !ok:
			return false
		case above:
			t.least = max(t.least, int64(size)+1)
		default:
			t.most = min(t.most, int64(size))
		}
	}
	return true
}

// measure finds the values of the basis, and how many layers the list has.
func (t *taping) measure(tree *typeTree) bool {
	sides := make(map[string]float64)
	for i := range tree.tensors {
		tensor := &tree.tensors[i]
		for at, side := range tensor.shape {
			key := starred(tensor.name) + "/" + strconv.Itoa(at)
			if old, ok := sides[key]; ok && old != float64(side) {
				side = -1
			}
			sides[key] = float64(side)
		}
	}
	for _, sum := range t.line.Sizes {
		var size [6]int64
		for _, product := range sum {
			value, _ := number(product[1])
			for _, atom := range product[2:] {
				name, _ := atom.(string)
				side := sides[name]
				if field, ok := strings.CutPrefix(name, "$"); ok {
					v, _ := t.of.find(field)
					side, _ = number(v)
				}
				if value *= side; value <= 0 || value > 1<<50 {
					return false
				}
			}
			size[whole(product[0])] += int64(math.Round(value))
		}
		t.sizes = append(t.sizes, size)
	}
	for i := range t.layers {
		name := t.layers[i].Name
		t.index[name] = i
		if at := numbersIn(name); len(at) > 0 {
			t.count = max(t.count, at[0]+1)
		}
	}
	return t.count != 1
}
