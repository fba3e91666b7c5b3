package paged

import (
	"encoding/json"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// published is a config that someone published.
type published struct {
	Name   string
	Config json.RawMessage
}

// publicConfigs are configs by their names.
func publicConfigs(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	configs := map[string]json.RawMessage{}
	for _, rows := range fixtures.Must(fixtures.Rows[[]published]("../../../../fixtures/oracle/public.json.gz"))(t) {
		for _, row := range rows {
			configs[row.Name] = row.Config
		}
	}
	return configs
}
