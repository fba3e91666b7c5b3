package paged

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// packed reads the JSON values of a packed file of fixtures, one after another.
func packed[T any](t *testing.T, name string) (values []T) {
	t.Helper()
	file := fixtures.Must(os.Open("../../../../fixtures/" + name))(t)
	defer func() { _ = file.Close() }()
	plain := fixtures.Must(gzip.NewReader(file))(t)
	for decoder := json.NewDecoder(plain); decoder.More(); {
		var value T
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(name, err)
		}
		values = append(values, value)
	}
	return values
}

// published is a config that someone published.
type published struct {
	Name   string
	Config json.RawMessage
}

// publicConfigs are configs by their names.
func publicConfigs(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	configs := map[string]json.RawMessage{}
	for _, rows := range packed[[]published](t, "oracle/public.json.gz") {
		for _, row := range rows {
			configs[row.Name] = row.Config
		}
	}
	return configs
}
