package program

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text writes the program as lines, which [Parse] reads back as the same
// program. A line is one of
//
//	device D arena BYTES budget BYTES
//	buffer D NAME OFFSET +BYTES CLASS
//	channel NAME SRC>DST slots N bytes B
//	routine NAME UNITS                    its kernels below it, indented
//	D.N STREAM OP [ROUTINE] [mbK] [CH#SEQ] BUFFERS… [after STREAM:D.N …]
//
// N counts a device's instructions from 0. A buffer is NAME if it is read, >NAME if it is written,
// +NAME if it is accumulated into. Names have letters, digits and . _ [ ], those of channels no dots.
// The other lines describe the program and its times in picoseconds:
//
//	program devmap.program/v1
//	model "NAME"
//	plan DIGEST
//	time picoseconds
//	predicted RUNTIME step TICKS peaks BYTES…
//	link CHANNEL TICKS LATENCY            if the times of its messages are not 0
//	ticks D OP NAME TICKS                 of all such instructions of a device: NAME
//	                                      is their routine, or the buffer that those
//	                                      without one change first
//	ticks D.N TICKS                       of one that differs from them
//
// Lines that begin with # are comments. Text returns an error for a program without such a form, for
// example with other letters in a name.
func (program *Program) Text(to io.Writer) error {
	if err := program.printable(); err != nil {
		return err
	}
	writer := &textWriter{Program: program, Writer: bufio.NewWriterSize(to, 1<<16)}
	writer.header()
	writer.declarations()
	if program.Timed {
		writer.durations()
	}
	for index := range program.Instrs {
		writer.line = program.appendLine(writer.line[:0], int32(index))
		writer.Write(append(writer.line, '\n'))
	}
	return writer.Flush()
}

// textWriter writes lines of a program that is printable.
type textWriter struct {
	*Program
	*bufio.Writer
	line []byte
}

func (writer *textWriter) header() {
	fmt.Fprintf(writer.Writer, "program %s\n", version)
	if writer.Model != "" {
		fmt.Fprintf(writer.Writer, "model %s\n", strconv.Quote(writer.Model))
	}
	if writer.Plan != "" {
		fmt.Fprintf(writer.Writer, "plan %s\n", writer.Plan)
	}
	if writer.Timed {
		fmt.Fprintf(writer.Writer, "time picoseconds\n")
	}
	for _, prediction := range writer.Predictions {
		fmt.Fprintf(writer.Writer, "predicted %s step %d peaks", prediction.Runtime, prediction.StepTicks)
		for _, peak := range prediction.Peaks {
			fmt.Fprintf(writer.Writer, " %d", peak)
		}
		fmt.Fprintln(writer.Writer)
	}
}

func (writer *textWriter) declarations() {
	for i := range writer.Devices {
		device := &writer.Devices[i]
		fmt.Fprintf(writer.Writer, "device %d arena %d budget %d\n", device.ID, device.Arena, device.Budget)
	}
	for i := range writer.Channels {
		channel := &writer.Channels[i]
		fmt.Fprintf(writer.Writer, "channel %s %d>%d slots %d bytes %d\n", channel.Name, writer.Devices[channel.From].ID, writer.Devices[channel.To].ID, channel.Slots, channel.Bytes)
		if writer.Timed && (channel.Ticks != 0 || channel.Latency != 0) {
			fmt.Fprintf(writer.Writer, "link %s %d %d\n", channel.Name, channel.Ticks, channel.Latency)
		}
	}
	for i := range writer.Routines {
		routine := &writer.Routines[i]
		fmt.Fprintf(writer.Writer, "routine %s", routine.Name)
		for _, unit := range routine.Units {
			if !isPlain(unit) {
				unit = strconv.Quote(unit)
			}
			fmt.Fprintf(writer.Writer, " %s", unit)
		}
		fmt.Fprintln(writer.Writer)
		for _, kernel := range routine.Kernels {
			fmt.Fprintf(writer.Writer, "  %s\n", kernel)
		}
	}
	for i := range writer.Buffers {
		buffer := &writer.Buffers[i]
		fmt.Fprintf(writer.Writer, "buffer %d %s %d +%d %s\n", writer.Devices[buffer.Device].ID, buffer.Name, buffer.Offset, buffer.Bytes, buffer.Class)
	}
}

// durations writes a line for a group of instructions, with the duration of the first of them, and
// one for each instruction with another duration.
func (writer *textWriter) durations() {
	ticks := map[durationKey]int64{}
	for i := range writer.Instrs {
		instr := &writer.Instrs[i]
		like, ok := writer.durationKeyOf(instr)
		if _, known := ticks[like]; known || !ok || instr.Op == Send {
			continue
		}
		if ticks[like] = instr.Ticks; instr.Ticks != 0 {
			fmt.Fprintf(writer.Writer, "ticks %d %s %s %d\n", writer.Devices[like.device].ID, like.op, writer.objectName(like), instr.Ticks)
		}
	}
	for i := range writer.Instrs {
		if instr := &writer.Instrs[i]; instr.Ticks != writer.usualTicks(instr, ticks) {
			fmt.Fprintf(writer.Writer, "ticks %s %d\n", writer.Place(int32(i)), instr.Ticks)
		}
	}
}

func (writer *textWriter) objectName(like durationKey) string {
	if like.op.Runs() {
		return writer.Routines[like.object].Name
	}
	return writer.Buffers[like.object].Name
}

// printable returns an error if the printed program would not be read back as it is.
func (program *Program) printable() error {
	if len(program.dangling) > 0 {
		return fmt.Errorf("a program with faults has no text: %s", program.dangling[0].Message)
	}
	for i := range program.Devices {
		for _, stream := range program.Devices[i].Streams {
			if !isName(stream) {
				return badName("stream", stream)
			}
		}
	}
	for i := range program.Buffers {
		if buffer := &program.Buffers[i]; !isObject(buffer.Name) || !isName(buffer.Class) {
			return badName("buffer", buffer.Name)
		}
	}
	for i := range program.Channels {
		if name := program.Channels[i].Name; !isChannel(name) {
			return badName("channel", name)
		}
	}
	for i := range program.Routines {
		if err := program.Routines[i].printable(); err != nil {
			return err
		}
	}
	for i := range program.Instrs {
		if instr := &program.Instrs[i]; instr.Op.Runs() != (instr.Routine >= 0) {
			return fmt.Errorf("instruction %s: %s and a routine go together", program.Place(int32(i)), instr.Op)
		}
	}
	return program.printableHeader()
}

func (program *Program) printableHeader() error {
	if program.Plan != "" && !isPlain(program.Plan) {
		return badName("plan", program.Plan)
	}
	for i := range program.Predictions {
		if runtime := program.Predictions[i].Runtime; !isName(runtime) {
			return badName("runtime", runtime)
		}
	}
	return nil
}

func (routine *Routine) printable() error {
	if !isObject(routine.Name) {
		return badName("routine", routine.Name)
	}
	if len(routine.Units) == 0 {
		return errors.New("routine " + routine.Name + " has no units")
	}
	for _, kernel := range routine.Kernels {
		if !isKernel(kernel) {
			return fmt.Errorf("routine %s: kernel %q is no line of text", routine.Name, kernel)
		}
	}
	return nil
}

// isKernel reports whether a text is one line without indentation.
func isKernel(text string) bool {
	return text != "" && utf8.ValidString(text) && strings.TrimSpace(text) == text && !strings.ContainsFunc(text, unicode.IsControl)
}

func badName(what, name string) error {
	return fmt.Errorf("%s %q has no text: names are of letters, digits and . _ [ ], channels' without dots", what, name)
}
