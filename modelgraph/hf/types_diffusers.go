package hf

import (
	_ "embed"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// componentTypesGz has diffusers' model classes, in the form of [typesGz]: a constructor's
// arguments are a class's config (fixtures/oracle/diffusing.py writes it).
//
//go:embed types-diffusers.jsonl.gz
var componentTypesGz []byte

// components is the release of diffusers that has a table.
var components = &release{name: "0.42.1", own: embedded.New("types-diffusers.jsonl.gz", componentTypesGz)}
