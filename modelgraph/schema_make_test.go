package modelgraph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/fixtures"
)

// object is a JSON object of a schema.
type object map[string]any

// schemaMaker makes the schema of model.json from the types that read it.
type schemaMaker struct {
	says map[string]map[string]string // Go type to field to its comment
	defs object
}

// opsDef is the definition of all ops together.
const opsDef = "op"

// madeSchema returns the schema of [fileModel]: the form that [Read] accepts, in draft 2020-12.
// Checks of values (known names, sums) are not in it.
func madeSchema(t *testing.T) object {
	t.Helper()
	maker := schemaMaker{says: fieldComments(t), defs: object{}}
	var kinds []any
	for _, kind := range opKinds() {
		name := opsDef + "-" + kind
		made := maker.structure(opTypes[kind])
		properties, _ := made["properties"].(object)
		properties["kind"] = object{"const": kind}
		made["required"] = []any{"kind"}
		maker.defs[name] = made
		kinds = append(kinds, object{"$ref": "#/$defs/" + name})
	}
	maker.defs[opsDef] = object{"type": "object", "oneOf": kinds}
	top := maker.structure(reflect.TypeFor[fileModel]())
	top["$schema"], top["title"], top["$defs"] = "https://json-schema.org/draft/2020-12/schema", formatVersion, maker.defs
	return top
}

// required are the fields that [Read] does not do without.
var required = map[reflect.Type][]any{
	reflect.TypeFor[fileModel]():  {"format_version", "layers"},
	reflect.TypeFor[fileLayer]():  {"name"},
	reflect.TypeFor[fileTensor](): {"dtype"},
}

func (maker *schemaMaker) structure(typ reflect.Type) object {
	properties := object{}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		made := maker.value(field.Type)
		maps.Copy(made, limits(typ, name))
		if text := maker.says[typ.Name()][field.Name]; text != "" {
			made["description"] = text
		}
		properties[name] = made
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if needs := required[typ]; needs != nil {
		out["required"] = needs
	}
	return out
}

func (maker *schemaMaker) value(typ reflect.Type) object {
	if typ == reflect.TypeFor[jsontext.Value]() {
		return object{"$ref": "#/$defs/" + opsDef}
	}
	switch typ.Kind() { //nolint:exhaustive // the kinds that a file has
	case reflect.Pointer:
		return maker.value(typ.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": maker.value(typ.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": maker.value(typ.Elem())}
	case reflect.Struct:
		name := strings.ToLower(typ.Name())
		if maker.defs[name] == nil {
			maker.defs[name] = maker.structure(typ)
		}
		return object{"$ref": "#/$defs/" + name}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int64:
		return object{"type": "integer", "minimum": 0, "maximum": maxDim}
	case reflect.Float64:
		return object{"type": "number", "minimum": 0, "maximum": maxNumber}
	}
	return object{"type": "string"}
}

// limits are what a field's values are checked against in addition to its type.
func limits(typ reflect.Type, field string) object {
	switch {
	case field == "format_version":
		return object{"const": formatVersion}
	case field == "layers":
		return object{"minItems": 1, "maxItems": maxLayers}
	case field == "dtype":
		return object{"enum": enumOf(slices.Sorted(maps.Keys(dtypeByName)))}
	case typ == reflect.TypeFor[Stream]() && field == "kind":
		return object{"enum": enumOf([]string{Text, Target, Fixed, Image})}
	case typ == reflect.TypeFor[Norm]() && field == "style", field == "qk_norm":
		return object{"enum": enumOf([]string{"", string(RMSNorm), string(GemmaRMSNorm), string(LayerNorm)})}
	case typ == reflect.TypeFor[Embedding]() && field == "index":
		return object{"enum": enumOf([]string{string(TokenIndex), string(PositionIndex), string(TypeIndex)})}
	case field == "repeat":
		return object{"maximum": maxRepeat}
	case typ == reflect.TypeFor[fileDeclared]() && strings.HasSuffix(field, "_bytes"):
		return object{"maximum": maxBytes}
	case typ == reflect.TypeFor[fileDeclared]() && strings.HasSuffix(field, "_seconds"):
		return object{"maximum": 1e9}
	}
	return nil
}

func enumOf(names []string) (out []any) {
	for _, name := range names {
		out = append(out, name)
	}
	return out
}

// fieldComments are the comments of the fields of this package's types, on one
// line each.
func fieldComments(t *testing.T) map[string]map[string]string {
	t.Helper()
	out := make(map[string]map[string]string)
	for _, file := range []string{"read.go", "layer.go", "graph.go", "op.go", "rotation.go"} {
		text := fixtures.Must(os.ReadFile(file))(t)
		parsed := fixtures.Must(parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments))(t)
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				out[spec.Name.Name] = commentsOf(body)
			}
			return true
		})
	}
	return out
}

func commentsOf(body *ast.StructType) map[string]string {
	out := make(map[string]string)
	for _, field := range body.Fields.List {
		said := field.Doc.Text()
		if said == "" {
			said = field.Comment.Text()
		}
		for _, name := range field.Names {
			out[name.Name] = strings.Join(strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(said)), " ")
		}
	}
	return out
}
