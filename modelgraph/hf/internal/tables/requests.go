package tables

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/internal/learned"
)

// A requestSection is the storages of a part of a step, in order: of a list's layers one after another,
// or of what is before, between and behind lists.
type requestSection struct {
	list      string
	backwards bool
	choices   any // place, kind and block, as in [tapeMode]
	least     int // layers for which the blocks hold
}

// A requestWord is a birth or a death. The death names the birth of the same storage, by section, layer and number.
type requestWord struct {
	what    byte  // as in [learned.Request]
	at      int32 // of a birth its size, of a death the birth's number in its block
	section int   // -1: the block of the death itself
	from    byte  // layers count from: '+' the death's own, 'e' the last, '0' the first; 0: the section has no list
	layer   int
}

// requestBlock is a block's words, and how many of them are births.
type requestBlock struct {
	words  []requestWord
	births int
}

// requestsOf reads the sections of a mode: [list, backwards, [[place, kind, block]…]], and the least layers if these
// are more than two.
func requestsOf(text jsontext.Value) (all []requestSection) {
	if text == nil {
		return nil
	}
	var rows [][]any
	typeTapeTable.Read(text, &rows)
	for _, row := range rows {
		var one requestSection
		one.list, _ = row[0].(string)
		one.backwards, _ = row[1].(bool)
		one.choices = row[2]
		if len(row) > 3 {
			one.least = int(whole(row[3]))
		}
		all = append(all, one)
	}
	return all
}

// requestWords are a block's: "5g" is the birth of a gradient of size 5. "-3" is the death of the
// block's own fourth birth, "-1.4" of the fifth of section 1. In a section of layers, "-1.-1.4" is of the last but four of the
// layer before, "-1.0.4" of the first layer's and "-1.e0.4" of the last's.
func requestWords(text string) (block requestBlock) {
	for field := range strings.FieldsSeq(text) {
		place, dies := strings.CutPrefix(field, "-")
		if !dies {
			digits := strings.TrimRight(field, "stigod")
			word := requestWord{what: learned.Passing, at: int32(decimals(digits))}
			if digits != field {
				word.what = field[len(digits)]
			}
			block.words, block.births = append(block.words, word), block.births+1
			continue
		}
		word, parts := requestWord{what: learned.Gone, section: -1}, strings.Split(place, ".")
		word.at = int32(decimals(parts[len(parts)-1]))
		if len(parts) > 1 {
			word.section = decimals(parts[0])
		}
		if len(parts) > 2 {
			word.from = '0'
			switch layer := parts[1]; layer[0] {
			case '+', '-':
				word.from, word.layer = '+', decimals(layer)
			case 'e':
				word.from, word.layer = 'e', decimals(layer[1:])
			default:
				word.layer = decimals(layer)
			}
		}
		block.words = append(block.words, word)
	}
	return block
}

func decimals(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// block is the block of a section's layer, if builds had one there.
func (t *taping) block(section *requestSection, layer, count int, blocks map[string]requestBlock) (block requestBlock, ok bool) {
	text, ok := t.chosen(section.choices, section.list, layer, count).(string)
	if !ok {
		return block, false
	}
	block, known := blocks[text]
	if !known {
		block = requestWords(text)
		blocks[text] = block
	}
	return block, true
}

// requests are those of a step of the config; nil if a layer has no block. Results that a caller keeps
// do not die in the step. one: it has one sequence, and that differs.
func (t *taping) requests(mode string, one bool) *learned.Requests {
	step, drops := strings.CutSuffix(mode, " drops")
	if one {
		step += " 1"
	}
	sections := requestsOf(t.line.Requests[step])
	if sections == nil {
		return nil
	}
	out := &learned.Requests{Sizes: t.sizes}
	blocks := make(map[string]requestBlock)
	first := make([][][2]int32, len(sections)) // births before those of a section's layer, and with them
	var births int32
	var results []bool
	for at, section := range sections {
		count := cmp.Or(t.counts[section.list], 1-min(1, len(section.list))) // what is in no list is one
		if count < max(1, section.least) {
			return nil
		}
		first[at] = make([][2]int32, count)
		for turn := range count {
			layer := turn
			if section.backwards {
				layer = count - 1 - turn
			}
			block, ok := t.block(&section, layer, count, blocks)
			if !ok {
				return nil
			}
			first[at][layer] = [2]int32{births, births + int32(block.births)}
			births += int32(block.births)
			for _, word := range block.words {
				if word.what == learned.Dropped && !drops {
					word.what = learned.Output
				}
				event := learned.Request{What: word.what, At: word.at}
				if word.what != learned.Gone {
					results = append(results, word.what == learned.Output)
				} else if event.At = word.birth(first, at, layer); event.At < 0 || int(event.At) >= len(results) {
					return nil // fewer layers than any build had
				} else if results[event.At] {
					continue
				}
				out.Events = append(out.Events, event)
			}
		}
	}
	return out
}

// birth is the number of the birth that a word of a layer in a section says, or -1. Another layer's birth counts from its
// block's end: a first layer has more at its beginning.
func (word *requestWord) birth(first [][][2]int32, section, layer int) int32 {
	if word.section < 0 {
		return first[section][layer][0] + word.at
	}
	layers, other := first[word.section], word.layer
	switch word.from {
	case 0:
		return layers[0][0] + word.at
	case '+':
		other += layer
	case 'e':
		other = len(layers) - 1 - word.layer
	}
	if other < 0 || other >= len(layers) {
		return -1
	}
	return layers[other][1] - 1 - word.at
}

// placeOf is where a layer is in a list.
func placeOf(number, count int) string {
	switch {
	case number == count-1:
		return "last"
	case number < 2:
		return strconv.Itoa(number)
	}
	return "middle"
}
