package hf

import (
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// Short names that all readers use.
var (
	clipName, short, typeNamed = spell.Clip, spell.Short, spell.DType

	empty = tables.Empty
)
