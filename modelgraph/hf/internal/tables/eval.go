package tables

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// missing is a rule's value for a key that an object lacks.
const missing = "\x00absent"

// evaluation evaluates expressions over the fields of a config. Numbers, true, false and null are
// themselves, "$x" is field x, "'x" text x, and a list an operation on those after its name.
type evaluation struct {
	object *Object
	rules  map[string]any // nil: the file's fields
	// setInside are the fields of objects inside that rules set.
	setInside []string
	known     map[string]any
	sizes     map[string]any // of tensors, by names that begin with #
	err       error
	place     string // the field that was read last
	doubt     any    // an expression that differs from one equal to it in all builds
	// contested are fields that the file sets and the class computes from others.
	contested []string
}

func (of *evaluation) fail(format string, args ...any) any {
	if of.err == nil {
		of.err, of.doubt = fmt.Errorf(format, args...), nil
	}
	return nil
}

func (of *evaluation) find(path string) (any, bool) {
	if strings.HasPrefix(path, "#") {
		v, ok := of.sizes[path]
		return v, ok
	}
	rule, ruled := of.rules[path]
	if !ruled {
		return of.object.get(path)
	}
	if v, said := of.object.rotary(path); said {
		return v, true
	}
	if v, ok := of.known[path]; ok {
		return v, v != missing
	}
	file := &evaluation{object: of.object}
	v := file.eval(rule, nil)
	if file.err != nil {
		of.place = file.place
		of.fail("%w", file.err)
		of.doubt = file.doubt
		return nil, false
	}
	for _, field := range of.object.aliased {
		if before := of.object.with(field.name, field.before); reads(rule, field.name) && !DeepEqual(v, (&evaluation{object: before}).eval(rule, nil)) {
			of.place = field.name
			of.fail("%w", errOpen)
			return nil, false
		}
	}
	of.known[path] = v
	return v, v != missing
}

// sets is an object inside, below a path, with the fields that the config around it sets.
func (of *evaluation) sets(at string, object *Object) *Object {
	for _, path := range of.setInside {
		if name, inside := strings.CutPrefix(path, at); inside && at != "" {
			if v := of.field(path); of.err == nil {
				object = object.with(name, v)
			}
		}
	}
	return object
}

func (of *evaluation) field(path string) any {
	of.place = path
	v, ok := of.find(path)
	if !ok {
		return of.fail("there is no such field")
	}
	return v
}

// eval is the value of an expression; stars are the numbers of the name.
func (of *evaluation) eval(e any, stars []int) any {
	if of.err != nil {
		return nil
	}
	switch e := e.(type) {
	case string:
		if path, ok := strings.CutPrefix(e, "$"); ok {
			return of.field(path)
		}
		return strings.TrimPrefix(e, "'")
	case []any:
		op, _ := e[0].(string)
		return of.operation(op, e[1:], stars)
	}
	return e
}

// operation evaluates operations that do not evaluate all their operands.
func (of *evaluation) operation(op string, xs []any, stars []int) any {
	switch op {
	case "?":
		yes := truth(of.eval(xs[0], stars))
		if yes {
			return of.eval(xs[1], stars)
		}
		return of.eval(xs[2], stars)
	case "i":
		return of.star(xs, stars)
	case "absent":
		path, _ := xs[0].(string)
		_, ok := of.find(strings.TrimPrefix(path, "$"))
		return !ok
	case "each":
		return of.each(xs, stars)
	case "same":
		return of.agreed(xs, stars)
	case "ix":
		if len(stars) > 0 && of.openIndex(xs) {
			return of.fail("%w", errOpen)
		}
	case "open":
		return of.fail("%w", errOpen)
	case "try", "early":
		return of.tried(op, xs[0], stars)
	}
	values := make([]any, len(xs))
	for i, x := range xs {
		values[i] = of.eval(x, stars)
	}
	if of.err != nil {
		return nil
	}
	v, ok := apply(op, values)
	if !ok {
		return of.fail("%s is not known of these values", op)
	}
	return v
}

// errOpen: expressions that agreed in all builds differ.
var errOpen = errors.New("the builds that made the table do not decide it")

// agreed evaluates an expression, and others that must agree with it.
func (of *evaluation) agreed(xs []any, stars []int) any {
	v := of.eval(xs[0], stars)
	for _, x := range xs[1:] {
		if of.err != nil {
			return nil
		}
		place := of.place
		w := of.eval(x, stars)
		switch {
		case errors.Is(of.err, errOpen):
			return nil
		case of.err != nil: // It does not apply here.
			of.err, of.place = nil, place
		case !DeepEqual(v, w):
			of.fail("%w", errOpen)
			of.doubt = []any{xs[0], x}
			return nil
		}
	}
	return v
}

// tried is 0 if an expression has no value, such as for an absent module. A field of the file that
// an expression cannot read is no such case. An early one has the fields before the file's aliases are set.
func (of *evaluation) tried(op string, x any, stars []int) any {
	if op == "early" {
		return (&evaluation{object: of.object.early()}).eval(x, stars)
	}
	v := of.eval(x, stars)
	if of.err == nil || errors.Is(of.err, errOpen) {
		return v
	}
	if said, differs := of.object.differs(of.place); differs && !of.object.likeDefault(of.place, said) {
		return nil
	}
	of.err = nil
	return 0.0
}

func (of *evaluation) star(xs []any, stars []int) any {
	at, _ := xs[0].(float64)
	ahead, _ := xs[1].(float64)
	if int(at) >= len(stars) {
		return of.fail("there is no such number")
	}
	return float64(stars[int(at)]) + ahead
}

// each makes a list: its length, and an expression for its elements.
func (of *evaluation) each(xs []any, stars []int) any {
	count, ok := number(of.eval(xs[0], stars))
	if !ok || count > maxRounds {
		return of.fail("%v is no length", count)
	}
	var list []any
	for i := range int(count) {
		list = append(list, of.eval(xs[1], []int{i}))
	}
	return list
}

// reads reports an expression that reads a field.
func reads(e any, path string) bool {
	switch e := e.(type) {
	case string:
		return e == "$"+path
	case []any:
		return slices.ContainsFunc(e, func(x any) bool { return reads(x, path) })
	}
	return false
}
