package estimate

import (
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// comparedBands are the bands of model types, by the kind of step: twice the largest
// difference of the type's cells of that kind (fixtures/oracle), and no less than that of
// all its cells. Of cells that were held out, 3 in 100 were beyond such bands. "other" is
// twice the largest of all. TestBands writes the file.
var comparedBands = sync.OnceValues(func() (bands map[string]map[string]float64, err error) {
	err = json.Unmarshal(bandsFile, &bands)
	return bands, err
})

//go:embed bands.json
var bandsFile []byte

// comparedBand is the band of a type's step: the widest of what the step has.
func comparedBand(family string, w *costmodel.Workload) (width float64, ok bool) {
	bands, err := comparedBands()
	if err != nil {
		panic(err)
	}
	for kind, has := range map[string]bool{
		"lora": w.LoRARank > 0, "autocast": ops.MixedPrecision(w.Precision), "fp32": w.Precision == costmodel.FP32True, "eager": w.Attention == value.EagerAttention,
		"train": w.Mode == costmodel.Train, "infer": w.Mode != costmodel.Train, "other": w.Quantize != "" || w.Optimizer != "" && w.Optimizer != costmodel.AdamW,
	} {
		of, compared := bands[family][kind]
		if !compared {
			of = bands[family]["other"]
		}
		if has {
			width = max(width, of)
		}
	}
	return width, width > 0
}
