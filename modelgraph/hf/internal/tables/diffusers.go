package tables

import (
	_ "embed"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// componentTypesGz has diffusers' model classes, in the form of [typesGz]: a constructor's
// arguments are a class's config (fixtures/oracle/diffusing.py writes it).
//
//go:embed types-diffusers.jsonl.gz
var componentTypesGz []byte

// Components is the release of diffusers that has a table.
var Components = &Release{Name: "0.42.1", own: embedded.New("types-diffusers.jsonl.gz", componentTypesGz)}
