package modelgraph

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// opTypes maps the kind of an op in model.json to its Go type.
var opTypes = func() map[string]reflect.Type {
	m := make(map[string]reflect.Type)
	for _, op := range []Op{
		Embedding{},
		Norm{},
		Attention{},
		MLP{},
		MoE{},
		Head{},
		Linear{},
		Conv{},
		StateSpace{},
		Rotary{},
		Parameter{},
		Opaque{},
	} {
		m[op.kind()] = reflect.TypeOf(op)
	}
	return m
}()

// maxDim limits a dimension. The computation of costs limits products (costmodel/internal/ops:
// Bound).
const maxDim = 1 << 40

// maxRepeat limits how often a layer runs.
const maxRepeat = maxLayers

// decodeOp reads {"kind": "embedding", "vocab": 32000, …}.
func decodeOp(raw jsontext.Value) (Op, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	var kind string
	if err := json.Unmarshal(members["kind"], &kind); err != nil {
		return nil, fmt.Errorf("an op needs a kind (known: %s)", strings.Join(opKinds(), ", "))
	}
	typ, ok := opTypes[kind]
	if !ok {
		return nil, fmt.Errorf("unknown op kind %q (known: %s)", kind, strings.Join(opKinds(), ", "))
	}
	delete(members, "kind") // no op type has the field
	body, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	value := reflect.New(typ)
	if err := json.Unmarshal(body, value.Interface(), json.RejectUnknownMembers(true)); err != nil {
		var sem *json.SemanticError
		if errors.As(err, &sem) {
			return nil, fmt.Errorf("op %q: %s", kind, semanticText(sem))
		}
		return nil, fmt.Errorf("op %q: %w", kind, err)
	}
	op, _ := value.Elem().Interface().(Op)
	return op, checkOp(op)
}

// checkOp returns an error for a number that is negative or out of range, and for an unknown name.
func checkOp(op Op) error {
	value := reflect.ValueOf(op)
	if value.Kind() != reflect.Struct {
		return fmt.Errorf("op %q is a %v: give the struct itself", op.kind(), value.Kind())
	}
	if err := checkNumbers(value, ""); err != nil {
		return fmt.Errorf("op %q: %w", op.kind(), err)
	}
	style := RMSNorm
	switch op := op.(type) {
	case Norm:
		style = op.Style
	case Attention:
		style = op.QKNorm
	case Embedding:
		switch op.Index {
		case TokenIndex, PositionIndex, TypeIndex:
		default:
			return fmt.Errorf("op %q: unknown index %q (known: position, token-type; absent: tokens)", op.kind(), op.Index)
		}
	}
	switch style {
	case "", RMSNorm, GemmaRMSNorm, LayerNorm:
		return nil
	}
	return fmt.Errorf("op %q: unknown norm style %q (known: rms, gemma-rms, layer)", op.kind(), style)
}

// maxNumber limits numbers that are not dimensions: an epsilon, a base, a cap.
const maxNumber = 1e30

// checkNumbers checks the numbers of a struct against their limits; place is the path to it.
func checkNumbers(value reflect.Value, place string) error {
	for i := range value.NumField() {
		field, name := value.Field(i), place+fieldName(value.Type().Field(i))
		switch field.Kind() { //nolint:exhaustive // the kinds that hold numbers
		case reflect.Int64:
			if count := field.Int(); count < 0 || count > maxDim {
				return fmt.Errorf("%s is %d, not between 0 and 2^40", name, count)
			}
		case reflect.Float64:
			if number := field.Float(); !(number >= 0 && number <= maxNumber) {
				return fmt.Errorf("%s is %v, not between 0 and 1e30", name, number)
			}
		case reflect.Struct:
			if err := checkNumbers(field, name+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

func encodeOp(op Op) (jsontext.Value, error) {
	body, err := json.Marshal(op)
	if err != nil {
		return nil, err
	}
	kind := fmt.Sprintf(`{"kind":%q`, op.kind())
	if len(body) > 2 {
		kind += ","
	}
	return append(jsontext.Value(kind), body[1:]...), nil
}

func opKinds() []string {
	names := make([]string, 0, len(opTypes))
	for key := range opTypes {
		names = append(names, key)
	}
	sort.Strings(names)
	return names
}

func fieldName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// finite reports whether value is usable in a cost.
func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
