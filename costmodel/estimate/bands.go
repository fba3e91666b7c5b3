package estimate

import (
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// comparedBands are the bands of model types, by the kind of step. devmap.measure followed
// cells of small random models (fixtures/oracle). A band is twice the largest difference
// of the type's cells of that kind, and no less than that of all its cells. Of cells that
// were held out, 3 in 100 were beyond such bands. "other" is twice the largest of all.
// TestBands writes the file.
var comparedBands = sync.OnceValue(func() map[string]map[string]float64 {
	var bands map[string]map[string]float64
	if err := json.Unmarshal(bandsFile, &bands); err != nil {
		panic(err)
	}
	return bands
})

//go:embed bands.json
var bandsFile []byte

// comparedBand is the band of a type's step: the widest of what the step has.
func comparedBand(family string, workload *costmodel.Workload) (band float64, ok bool) {
	bands, ok := comparedBands()[family]
	if !ok {
		return 0, false
	}
	for kind, has := range map[string]bool{
		"lora":     workload.LoRARank > 0,
		"autocast": ops.MixedPrecision(workload.Precision),
		"fp32":     workload.Precision == costmodel.FP32True,
		"eager":    workload.Attention == value.EagerAttention,
		"other":    workload.Quantize != "" || workload.Optimizer != "" && workload.Optimizer != costmodel.AdamW,
		"train":    workload.Mode == costmodel.Train,
		"infer":    workload.Mode != costmodel.Train,
	} {
		if width, compared := bands[kind]; has && !compared {
			band = max(band, bands["other"])
		} else if has {
			band = max(band, width)
		}
	}
	return band, true
}
