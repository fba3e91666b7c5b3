package tables

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
)

// This file finds the part of each layer in a class's tape.

// storages are the storages of a sum.
func (t *taping) storages(of tapeSum) learned.Storages {
	out := make(learned.Storages, len(of))
	for i, one := range of {
		out[i] = t.sizes[one[0]]
		out[i].Count = one[1]
	}
	return out
}

// ran is a layer and its part, in the order in which layers run.
type ran struct {
	layer int
	part  *tapePart
}

// stem returns the list that a layer is in, and the layer's name with a star for its place. A layer in no
// list has an empty one and its own name.
func stem(name string) (list, pattern string) {
	parts := strings.Split(name, ".")
	at := slices.IndexFunc(parts, func(part string) bool { return part == "*" || paths.Decimal(part) })
	if at < 0 {
		return "", name
	}
	list = strings.Join(parts[:at], ".")
	parts[at] = "*"
	return list, strings.Join(parts, ".")
}

// order finds the parts of layers as they run. Rows of one list repeat for each of its layers. False: a
// layer or a part is missing.
func (t *taping) order(rows [][]any) (all []ran, ok bool) {
	add := func(row []any, list string, number int) bool {
		name, _ := row[0].(string)
		if list != "" {
			name = strings.Replace(name, "*", strconv.Itoa(number), 1)
		}
		layer, there := t.index[name]
		if !there && list != "" {
			return true
		}
		part := t.part(row, list, number)
		if part == nil || !there {
			return false
		}
		all = append(all, ran{layer, part})
		return true
	}
	for at := 0; at < len(rows); {
		name, _ := rows[at][0].(string)
		list, _ := stem(name)
		end := at + 1
		for ; list != "" && end < len(rows); end++ {
			name, _ := rows[end][0].(string)
			if other, _ := stem(name); other != list {
				break
			}
		}
		for number := range max(1, t.counts[list]) {
			for _, row := range rows[at:end] {
				if !add(row, list, number) {
					return nil, false
				}
			}
		}
		at = end
	}
	return all, true
}

// part is the part of a layer by its place and kind, nil if no build had one there.
func (t *taping) part(row []any, list string, number int) *tapePart {
	chosen := t.chosen(row[1], list, number, t.counts[list])
	if chosen == nil {
		return nil
	}
	at := whole(chosen)
	if t.parts[at] == nil {
		t.parts[at] = new(tapePart)
		typeTapeTable.Read(t.line.Parts[at], t.parts[at])
	}
	return t.parts[at]
}

// chosen is what choices, each [place, kind, one], have for a layer; nil if no build had it. Both layers of two may
// have places of their own.
func (t *taping) chosen(choices any, list string, number, count int) any {
	place, kind := "", ""
	if list != "" {
		place = placeOf(number, count)
		if number < len(t.kinds) {
			kind = t.kinds[number]
		}
	}
	all, _ := choices.([]any)
	for _, choice := range all {
		one, _ := choice.([]any)
		if (one[0] == "" || one[0] == place || count == 2 && one[0] == place+" of 2") && (one[1] == "" || one[1] == kind) {
			return one[2]
		}
	}
	return nil
}

// named is the layer that another's part names. A plain number is an index of the list, a signed
// one a distance, end-n a place from the list's end.
func (t *taping) named(name string, own int) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if back, ok := strings.CutPrefix(part, "end-"); ok {
			n, _ := strconv.Atoi(back)
			parts[i] = strconv.Itoa(t.counts[strings.Join(parts[:i], ".")] - 1 - n)
		} else if n, err := strconv.Atoi(part); err == nil && (part[0] == '+' || part[0] == '-') {
			parts[i] = strconv.Itoa(own + n)
		}
	}
	return strings.Join(parts, ".")
}

// placed is a part at a layer's place.
func (t *taping) placed(name string, part *tapePart) *learned.Part {
	if one, ok := t.shared[part]; ok {
		return one
	}
	own, alike := 0, true
	if at := numbersIn(name); len(at) > 0 {
		own = at[0]
	}
	byLayer := func(of map[string]tapeSum) (out map[string]learned.Storages) {
		for other, sum := range of {
			if out == nil {
				out = make(map[string]learned.Storages, len(of))
			}
			alike = alike && !strings.ContainsAny(other, "+-")
			out[t.named(other, own)] = t.storages(sum)
		}
		return out
	}
	moments := func(of []tapeMoment) learned.Moments {
		out := make(learned.Moments, len(of))
		for i, moment := range of {
			out[i].Bytes, out[i].Past = t.storages(moment.Bytes), byLayer(moment.Past)
		}
		return out
	}
	out := &learned.Part{
		Saved: t.storages(part.Saved), Returned: t.storages(part.Returned), Lasting: t.storages(part.Lasting), Copied: byLayer(part.Copied), Products: part.Products,
		Forward: moments(part.Forward), Backward: moments(part.Backward), Accumulate: moments(part.Accumulate),
	}
	if part.Accumulate == nil {
		out.Accumulate = out.Backward
	}
	if alike {
		t.shared[part] = out
	}
	return out
}

// sum is a sum of products; false if a factor of it is not known or 0.
func (t *taping) sum(products []any, sides map[string]float64) (size [6]int64, ok bool) {
	for _, one := range products {
		product, _ := one.([]any)
		value, _ := number(product[1])
		for _, atom := range product[2:] {
			name, _ := atom.(string)
			name, divides := strings.CutPrefix(name, "/")
			side := sides[name]
			if field, ok := strings.CutPrefix(name, "$"); ok {
				side, _ = t.side(field)
			}
			if name == "$lora_rank" {
				side = float64(t.rank)
			}
			if side <= 0 {
				return size, false
			}
			if divides {
				side = 1 / side
			}
			if value *= side; value > 1<<50 {
				return size, false
			}
		}
		size[whole(product[0])] += int64(math.Round(value))
	}
	return size, true
}
