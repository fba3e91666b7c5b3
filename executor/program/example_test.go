package program_test

import (
	"fmt"
	"log"
	"os"

	"github.com/devmap-dev/devmap/executor/program"
)

// A program of two devices that hand one message on, read and printed again.
func ExampleParse() {
	read, err := program.Parse("by hand", []byte(`
device 0 arena 256 budget 1024
device 1 arena 256 budget 1024
channel act[1] 0>1 slots 1 bytes 256
buffer 0 out 0 +256 stream
buffer 1 slot[0] 0 +256 slot

0.0 compute zero >out
0.1 to1 send mb0 act[1]#0 out after compute:0.0
1.0 compute recv mb0 act[1]#0 >slot[0]
1.1 compute fence slot[0]
1.2 compute free act[1]#0
`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(read.Line(1))
	if err := read.Text(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0.1 to1 send mb0 act[1]#0 out after compute:0.0
	// program devmap.program/v1
	// device 0 arena 256 budget 1024
	// device 1 arena 256 budget 1024
	// channel act[1] 0>1 slots 1 bytes 256
	// buffer 0 out 0 +256 stream
	// buffer 1 slot[0] 0 +256 slot
	// 0.0 compute zero >out
	// 0.1 to1 send mb0 act[1]#0 out after compute:0.0
	// 1.0 compute recv mb0 act[1]#0 >slot[0]
	// 1.1 compute fence slot[0]
	// 1.2 compute free act[1]#0
}
