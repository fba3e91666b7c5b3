package page

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestFormatNamesEveryField: every field of the page is on its page of docs/formats.
func TestFormatNamesEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "formats", "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(kind reflect.Type) {
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct || seen[kind] || kind.PkgPath() != reflect.TypeFor[Page]().PkgPath() {
			return
		}
		seen[kind] = true
		for i := range kind.NumField() {
			field := kind.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.IsExported() && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/formats/page.md does not explain %q of %s", name, kind.Name())
			}
			visit(field.Type)
		}
	}
	visit(reflect.TypeFor[Page]())
	if len(seen) < 25 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
