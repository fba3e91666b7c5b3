package catalogue_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
)

// A GPU of the catalogue as a device of a topology, and its memory in use before a model.
func ExampleFind() {
	gpu, err := catalogue.Find("H100-80GB")
	if err != nil {
		fmt.Println(err)
		return
	}
	device := gpu.Device(costmodel.Train)
	fmt.Println(device.Name, costmodel.Bytes(device.CapacityBytes))
	fmt.Println("CUDA's context:", costmodel.Bytes(device.ContextBytes))
	fmt.Println("a workspace of cuBLAS:", costmodel.Bytes(device.WorkspaceBytes))
	// Output:
	// h100-80gb 79.19 GiB
	// CUDA's context: 770.8 MiB
	// a workspace of cuBLAS: 32.0 MiB
}
