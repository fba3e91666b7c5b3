package emit_test

import (
	"fmt"
	"os"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// A plan becomes the file that Transformers' device_map reads, and the call
// that loads the model under it.
func ExampleFor() {
	plan := &devicemap.Plan{
		Workload:  costmodel.Workload{Mode: costmodel.Infer, StoredTypes: true},
		DeviceMap: devicemap.Flat{{Key: "model.embed_tokens", Device: 0}, {Key: "model.layers.0", Device: 0}, {Key: "lm_head", Device: 1}},
	}
	target, err := emit.For("accelerate")
	if err != nil {
		panic(err)
	}
	if err := target.Write(os.Stdout, &emit.Input{Plan: plan}); err != nil {
		panic(err)
	}
	usage, _ := target.Usage(&emit.Input{Plan: plan}, "device_map.json")
	fmt.Println(usage)
	// Output:
	// {
	//  "model.embed_tokens": 0,
	//  "model.layers.0": 0,
	//  "lm_head": 1
	// }
	// AutoModelForCausalLM.from_pretrained(MODEL, device_map=json.load(open("device_map.json")), dtype="auto")
}
