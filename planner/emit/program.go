package emit

import (
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// devmap's own engine runs a program, which devmap simulate runs.
var _ = register(&Target{
	Name: "program", File: "program.txt", JSON: "program.json", Program: true,
	Help: `--for program writes the program of devmap's own engine: the instructions of one
step on every GPU, with all buffers and messages, verified before it is written.
devmap reads the model again. It re-estimates a plan for another engine with the
same split, and the program has both predictions.`,
	Example: "llama-3.2-1b --gpus 2 --mode train", Golden: []string{"pipeline"},
	Write: func(to io.Writer, input *Input) error {
		if input.JSON {
			return input.Program.WriteJSON(to)
		}
		return input.Program.Text(to)
	},
	Usage: func(input *Input, file string) (usage, note string) {
		return fmt.Sprintf("%d instructions on %d GPUs, checked: devmap simulate %s", len(input.Program.Instrs), len(input.Program.Devices), quote.Path(file)), ""
	},
})
