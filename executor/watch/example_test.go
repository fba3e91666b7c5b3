package watch_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor/watch"
)

// ExampleVisible: a process's numbers of GPUs are places in its
// CUDA_VISIBLE_DEVICES.
func ExampleVisible() {
	gpus := []watch.GPU{{UUID: "GPU-5a17"}, {UUID: "GPU-5b03"}, {UUID: "GPU-77c1"}}
	for _, list := range []string{"2,0", "GPU-77,GPU-5b", "1,7,0"} {
		fmt.Println(watch.Visible(list, true, gpus))
	}
	// Output:
	// [2 0] <nil>
	// [2 1] <nil>
	// [1] <nil>
}
