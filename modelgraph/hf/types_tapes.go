package hf

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
)

// The memory of a prefill of the newest release's classes, layer by layer, as functions of
// config fields and sides of tensors: fixtures/oracle/tapes.py finds it.
var (
	//go:embed types-tapes.jsonl.gz
	typeTapesGz   []byte
	typeTapeTable = embedded.New("types-tapes.jsonl.gz", typeTapesGz)
)

// typeTapes is the line of a model class.
type typeTapes struct {
	Class  string `json:"class"`
	Config string `json:"config"` // its config class
	// Sizes are those of storages: sums of [factor of the workload by its index, number,
	// atoms…], which are multiplied. An atom is $field, or tensor/side.
	Sizes [][][]any `json:"sizes"`
	// Parts are what layers do.
	Parts []tapePart `json:"parts"`
	// Layers are [name with stars, [place, kind of the layer, part]…], in the order in which
	// they run.
	Layers [][]any `json:"layers"`
	// Pins are values of fields, Like whether fields are above 0, Grouped whether heads
	// share keys and values, as in all builds.
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

// tape gives layers the memory of a prefill, if the line of the class holds for the config.
func (tree *typeTree) tape(class *typeClass, op *operating, layers []modelgraph.Layer) {
	for text := range typeTapeTable.Lines(fmt.Sprintf(`{"class":%q,"config":%q,`, class.Class, class.Config)) {
		line := new(typeTapes)
		typeTapeTable.Read(text, line)
		t := &taping{line: line, of: op.of, layers: layers, index: make(map[string]int)}
		if t.holds(tree) && t.measure(tree) {
			t.play()
		}
		return
	}
}

// holds reports a config as those that were built.
func (t *taping) holds(tree *typeTree) bool {
	for path, want := range t.line.Pins {
		if v, ok := tree.root.get(path); ok && !deepEqual(v, want) {
			return false
		}
	}
	for path, some := range t.line.Like {
		v, _ := t.of.find(path)
		if rate, _ := v.(float64); rate > 0 != some {
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
				if side <= 0 {
					return false
				}
				value *= side
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

// storages are those of a sum.
func (t *taping) storages(of tapeSum) learned.Storages {
	out := make(learned.Storages, len(of))
	for i, one := range of {
		out[i].Size, out[i].Count = t.sizes[one[0]], one[1]
	}
	return out
}

// ran is a layer and its part, in the order in which layers run.
type ran struct {
	layer int
	part  *tapePart
}

// order finds the parts of layers; false if one is missing.
func (t *taping) order(rows [][]any) (all []ran, ok bool) {
	var before, inside, after [][]any
	for _, row := range rows {
		name, _ := row[0].(string)
		switch {
		case strings.Contains(name, "*"):
			inside = append(inside, row)
		case len(inside) > 0:
			after = append(after, row)
		default:
			before = append(before, row)
		}
	}
	add := func(rows [][]any, number int) bool {
		for _, row := range rows {
			name, _ := row[0].(string)
			if number >= 0 {
				name = filledIn(name, []int{number})
			}
			layer, there := t.index[name]
			if !there && number >= 0 {
				continue
			}
			part := t.part(row, number)
			if part == nil || !there {
				return false
			}
			all = append(all, ran{layer, part})
		}
		return true
	}
	if !add(before, -1) {
		return nil, false
	}
	for number := range t.count {
		if !add(inside, number) {
			return nil, false
		}
	}
	return all, add(after, -1)
}

// part is that of a layer by its place and kind, nil if no build had one there.
func (t *taping) part(row []any, number int) *tapePart {
	place, kind := "", ""
	if number >= 0 {
		switch {
		case number == t.count-1:
			place = "last"
		case number < 2:
			place = strconv.Itoa(number)
		default:
			place = "middle"
		}
		if number < len(t.kinds) {
			kind, _ = t.kinds[number].(string)
		}
	}
	choices, _ := row[1].([]any)
	for _, choice := range choices {
		one, _ := choice.([]any)
		if (one[0] == "" || one[0] == place) && (one[1] == "" || one[1] == kind) {
			return &t.line.Parts[whole(one[2])]
		}
	}
	return nil
}

// named is a layer that a part of another names: a number alone is the first of the list,
// one with a sign a distance, end-n a place from the list's end.
func (t *taping) named(name string, own int) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if back, ok := strings.CutPrefix(part, "end-"); ok {
			n, _ := strconv.Atoi(back)
			parts[i] = strconv.Itoa(t.count - 1 - n)
		} else if n, err := strconv.Atoi(part); err == nil && (part[0] == '+' || part[0] == '-') {
			parts[i] = strconv.Itoa(own + n)
		}
	}
	return strings.Join(parts, ".")
}

// play gives layers their tapes.
func (t *taping) play() {
	all, ok := t.order(t.line.Layers)
	if !ok {
		return
	}
	for rank, one := range all {
		layer := &t.layers[one.layer]
		own := 0
		if at := numbersIn(layer.Name); len(at) > 0 {
			own = at[0]
		}
		byLayer := func(of map[string]tapeSum) map[string]learned.Storages {
			out := make(map[string]learned.Storages, len(of))
			for name, sum := range of {
				out[t.named(name, own)] = t.storages(sum)
			}
			return out
		}
		tape := &learned.Tape{
			Rank: rank, Least: t.least, Most: t.most, Saved: t.storages(one.part.Saved), Returned: t.storages(one.part.Returned), Copied: byLayer(one.part.Copied), Products: one.part.Products,
			Forward: make([]learned.Moment, len(one.part.Forward)),
		}
		for i, moment := range one.part.Forward {
			tape.Forward[i] = learned.Moment{Bytes: t.storages(moment.Bytes), Past: byLayer(moment.Past)}
		}
		layer.Learned = tape
	}
}
