package program

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
)

// fileProgram is the JSON form of a program: names instead of indexes, and an instruction's words
// as in its line.
type fileProgram struct {
	FormatVersion string           `json:"format_version"`
	Model         string           `json:"model,omitzero"`
	Plan          string           `json:"plan,omitzero"`
	Timed         bool             `json:"timed,omitzero"`
	Predictions   []filePrediction `json:"predictions,omitzero"`
	Devices       []fileDevice     `json:"devices"`
	Channels      []fileChannel    `json:"channels"`
	Routines      []fileRoutine    `json:"routines"`
	Buffers       []fileBuffer     `json:"buffers"`
	Instructions  []fileInstr      `json:"instructions"`
}

type filePrediction struct {
	Runtime   string  `json:"runtime"`
	StepTicks int64   `json:"step_picoseconds"`
	Peaks     []int64 `json:"peak_allocated_bytes"`
}

type fileDevice struct {
	Device int32 `json:"device"`
	Arena  int64 `json:"arena_bytes"`
	Budget int64 `json:"budget_bytes"`
}

type fileChannel struct {
	Name    string `json:"name"`
	From    int32  `json:"from"`
	To      int32  `json:"to"`
	Slots   int64  `json:"slots"`
	Bytes   int64  `json:"slot_bytes"`
	Ticks   int64  `json:"picoseconds,omitzero"`
	Latency int64  `json:"latency_picoseconds,omitzero"`
}

type fileRoutine struct {
	Name    string   `json:"name"`
	Units   []string `json:"units"`
	Kernels []string `json:"kernels,omitzero"`
}

type fileBuffer struct {
	Device int32  `json:"device"`
	Name   string `json:"name"`
	Offset int64  `json:"offset_bytes"`
	Bytes  int64  `json:"size_bytes"`
	Class  string `json:"class"`
}

// fileInstr: Buffers are NAME, >NAME and +NAME; After is STREAM:D.N.
type fileInstr struct {
	Device     int32    `json:"device"`
	Number     int32    `json:"number"`
	Stream     string   `json:"stream"`
	Op         string   `json:"op"`
	Routine    string   `json:"routine,omitzero"`
	MicroBatch *int32   `json:"micro_batch,omitzero"`
	Channel    string   `json:"channel,omitzero"`
	Sequence   *int32   `json:"sequence,omitzero"`
	Buffers    []string `json:"buffers,omitzero"`
	After      []string `json:"after,omitzero"`
	Ticks      int64    `json:"picoseconds,omitzero"`
}

// WriteJSON writes the program as JSON, with an element of an array on each line. Like
// [Program.Text] it returns an error for what it could not read back.
func (program *Program) WriteJSON(to io.Writer) error {
	if err := program.printable(); err != nil {
		return err
	}
	writer := &jsonWriter{Writer: bufio.NewWriterSize(to, 1<<16)}
	writer.field("{", "format_version", version)
	writer.field(",", "model", program.Model)
	writer.field(",", "plan", program.Plan)
	writer.field(",", "timed", program.Timed)
	writer.array("predictions", len(program.Predictions), func(i int) any { return filePrediction(program.Predictions[i]) })
	writer.array("devices", len(program.Devices), func(i int) any {
		device := &program.Devices[i]
		return fileDevice{device.ID, device.Arena, device.Budget}
	})
	writer.array("channels", len(program.Channels), func(i int) any {
		channel := &program.Channels[i]
		from, to := program.Devices[channel.From].ID, program.Devices[channel.To].ID
		return fileChannel{channel.Name, from, to, int64(channel.Slots), channel.Bytes, channel.Ticks, channel.Latency}
	})
	writer.array("routines", len(program.Routines), func(i int) any { return fileRoutine(program.Routines[i]) })
	writer.array("buffers", len(program.Buffers), func(i int) any {
		buffer := &program.Buffers[i]
		return fileBuffer{program.Devices[buffer.Device].ID, buffer.Name, buffer.Offset, buffer.Bytes, string(buffer.Class)}
	})
	writer.array("instructions", len(program.Instrs), func(i int) any { return program.fileInstr(int32(i)) })
	if writer.err != nil {
		return writer.err
	}
	fmt.Fprint(writer.Writer, "\n}\n")
	return writer.Flush()
}

// jsonWriter writes an object whose arrays have an element on each line: programs have many
// instructions, and people read them line by line.
type jsonWriter struct {
	*bufio.Writer
	err error // of encoding; the buffered writer keeps its own
}

func (writer *jsonWriter) field(before, name string, value any) {
	fmt.Fprintf(writer.Writer, "%s\n %q: ", before, name)
	writer.value(value)
}

func (writer *jsonWriter) value(value any) {
	data, err := json.Marshal(value, json.FormatNilSliceAsNull(false))
	writer.err = errors.Join(writer.err, err)
	writer.Write(data)
}

func (writer *jsonWriter) array(name string, count int, element func(int) any) {
	fmt.Fprintf(writer.Writer, ",\n %q: [", name)
	for i := range count {
		before := ","
		if i == 0 {
			before = ""
		}
		fmt.Fprintf(writer.Writer, "%s\n  ", before)
		writer.value(element(i))
	}
	fmt.Fprint(writer.Writer, "]")
}

func (program *Program) fileInstr(index int32) fileInstr {
	instr := &program.Instrs[index]
	device := &program.Devices[instr.Device]
	file := fileInstr{Device: device.ID, Number: index - device.First, Stream: device.Streams[instr.Stream], Op: instr.Op.String()}
	if instr.Routine >= 0 {
		file.Routine = program.Routines[instr.Routine].Name
	}
	if instr.MicroBatch >= 0 {
		file.MicroBatch = &instr.MicroBatch
	}
	if instr.Channel >= 0 {
		file.Channel, file.Sequence = program.Channels[instr.Channel].Name, &instr.Sequence
	}
	for _, access := range program.Accesses[instr.FirstAccess:instr.EndAccess] {
		file.Buffers = append(file.Buffers, string(program.appendAccess(nil, access)))
	}
	for _, wait := range program.Waits[instr.FirstWait:instr.EndWait] {
		file.After = append(file.After, string(program.appendWait(nil, wait)))
	}
	if program.Timed {
		file.Ticks = instr.Ticks
	}
	return file
}
