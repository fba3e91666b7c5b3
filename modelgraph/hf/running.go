package hf

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fields that only running needs are read leniently. An odd or unknown value is noted
// ([modelgraph.Graph.Unknown]) and never an error, since costs and maps do not depend on it. A
// field read here does not count as read, since it does not change the modules
// ([family.checkFields]).

// maxNumber bounds numbers as model.json does.
const maxNumber = 1e30

// unsaid notes a value that running needs and the field lacks.
func (cfg *fieldSet) unsaid(name, format string, args ...any) {
	if text := cfg.prefix + name + " " + fmt.Sprintf(format, args...); !slices.Contains(cfg.shared.unknown, text) {
		cfg.shared.unknown = append(cfg.shared.unknown, text)
	}
}

// number reads a number that is 0 or more; def if the field is absent.
func (cfg *fieldReader) number(def float64, name string) float64 {
	v, there := cfg.members[name]
	if !there {
		return def
	}
	var number float64
	if v.Kind() != '0' || json.Unmarshal(v, &number) != nil || !(number >= 0 && number <= maxNumber) {
		cfg.unsaid(name, "%s is not a number from 0 to 1e30", short(v))
		return def
	}
	return number
}

// numberOrNull is number, with def for a null too.
func (cfg *fieldReader) numberOrNull(def float64, name string) float64 {
	if cfg.isNull(name) {
		return def
	}
	return cfg.number(def, name)
}

// whole is an integer from 0 to 2^40; def if the field is absent or has another number.
func (cfg *fieldReader) whole(def int64, name string) int64 {
	number := cfg.number(float64(def), name)
	if number > maxDim || number != float64(int64(number)) {
		cfg.unsaid(name, "%v is not an integer from 0 to 2^40", number)
		return def
	}
	return int64(number)
}

func (cfg *fieldSet) isNull(name string) bool {
	v, there := cfg.members[name]
	return there && v.Kind() == 'n'
}

// object returns the members of an object; nil if it is absent or empty in Python's sense.
func (cfg *fieldReader) object(name string) map[string]jsontext.Value {
	v, there := cfg.members[name]
	if !there || empty(v) {
		return nil
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(v, &members) != nil {
		cfg.unsaid(name, "%s is not an object", short(v))
	}
	return members
}

// padding is 1 + the token whose embedding gets no gradient (nn.Embedding's padding_idx), def if
// pad_token_id is absent; 0: none. A negative token counts from the end.
func (cfg *fieldReader) padding(def, vocab int64) int64 {
	v, there := cfg.members["pad_token_id"]
	row := def - 1
	switch {
	case there && v.Kind() == 'n', !there && def == 0:
		return 0
	case there && json.Unmarshal(v, &row) != nil:
		cfg.unsaid("pad_token_id", "%s is not a token", short(v))
		return 0
	}
	if row < 0 {
		row += vocab
	}
	if row < 0 || row >= vocab {
		cfg.unsaid("pad_token_id", "%d is not a token of %d", row, vocab)
		return 0
	}
	return row + 1
}
