package tables_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestMended: the table has the parts that mended.json writes into a class's line, so that a table
// that is learned again keeps them.
func TestMended(t *testing.T) {
	type mend struct {
		Set   map[string]any
		Rules map[string]string
		Add   [][]any
	}
	var mends map[string]mend
	if err := json.Unmarshal(fixtures.Must(os.ReadFile("../../../../fixtures/oracle/mended.json"))(t), &mends); err != nil {
		t.Fatal(err)
	}
	packed := fixtures.Must(gzip.NewReader(bytes.NewReader(fixtures.Must(os.ReadFile("types.jsonl.gz"))(t))))(t)
	scanner, compared := bufio.NewScanner(packed), 0
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		text, _, _ := strings.Cut(scanner.Text(), "\t")
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		class, _ := line["class"].(string)
		for key, want := range mends[class].Set {
			compared++
			if !reflect.DeepEqual(line[key], want) && (line[key] != nil || reflect.ValueOf(want).Len() > 0) {
				t.Errorf("%s: %s is %v, not %v", class, key, line[key], want)
			}
		}
		rules, _ := line["rules"].(map[string]any)
		for name := range mends[class].Rules {
			compared++
			if rules[name] == nil {
				t.Errorf("%s has no rule for %s", class, name)
			}
		}
		entries, _ := line["entries"].([]any)
		for _, added := range mends[class].Add {
			compared++
			if !slices.ContainsFunc(entries, func(entry any) bool {
				parts, _ := entry.([]any)
				return len(parts) > 1 && parts[1] == added[1]
			}) {
				t.Errorf("%s has no entry %s", class, added[1])
			}
		}
	}
	if err := scanner.Err(); err != nil || compared < 200 {
		t.Errorf("%d parts compared, %v", compared, err)
	}
}
