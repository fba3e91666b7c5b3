package simulate

import (
	"bufio"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/executor/program"
)

// WriteTrace writes a simulated program in the Trace Event Format (catapult,
// docs/trace-event-format.md), which Chromium's chrome://tracing and Perfetto open. A process is a
// device, a thread a stream. An instruction that takes time is a complete event ("X"). A message is
// an arrow ("s" to "f") from its send to what runs next at its receive. A counter ("C") has the
// live bytes. Times are microseconds with all digits; a program without times gets a millisecond
// for a forward. An event is 100 to 200 bytes, and is written as it is made.
func WriteTrace(to io.Writer, prog *program.Program, result *Result) error {
	trace := &tracer{to: bufio.NewWriterSize(to, 1<<16), prog: prog, result: result, messages: newMessages(prog), lanes: newLanes(prog), scale: 1}
	if !prog.Timed {
		trace.scale = 1e9
	}
	trace.line = append(trace.line, `{"displayTimeUnit":"ns","traceEvents":[`...)
	for device := range prog.Devices {
		trace.device(device)
	}
	for i := range prog.Instrs {
		trace.instr(int32(i))
	}
	trace.line = append(trace.line, "\n]}\n"...)
	trace.flush()
	return trace.to.Flush()
}

// tracer writes events, a line each. A [bufio.Writer] keeps its first error.
type tracer struct {
	to       *bufio.Writer
	prog     *program.Program
	result   *Result
	messages messages
	lanes    lanes
	scale    int64 // picoseconds a tick
	line     []byte
	events   int
}

// flush writes the bytes in line.
func (trace *tracer) flush() {
	trace.to.Write(trace.line)
	trace.line = trace.line[:0]
}

// device names a device and its streams, and writes its live bytes.
func (trace *tracer) device(index int) {
	device := &trace.prog.Devices[index]
	pid := int64(device.ID)
	name := func(of string, thread int64, key string, value string) {
		trace.open("M", of, pid)
		trace.number("tid", thread)
		trace.line = append(trace.line, `,"args":{"`+key+`":`...)
		trace.line = append(trace.line, value...)
		trace.line = append(trace.line, "}}"...)
	}
	name("process_name", 0, "name", quoted("GPU "+strconv.FormatInt(pid, 10)))
	name("process_sort_index", 0, "sort_index", strconv.Itoa(index))
	for stream, of := range device.Streams {
		name("thread_name", int64(stream), "name", quoted(of))
		name("thread_sort_index", int64(stream), "sort_index", strconv.Itoa(stream))
	}
	for _, moment := range trace.result.Devices[index].Memory {
		trace.open("C", "live bytes", pid)
		trace.time("ts", moment.Time)
		trace.line = append(trace.line, `,"args":{"bytes":`...)
		trace.line = strconv.AppendInt(trace.line, moment.Bytes, 10)
		trace.line = append(trace.line, "}}"...)
	}
}

// instr writes an instruction and, for a send, the arrow of its message. Instructions that take no
// time are left out: the viewers show them below their neighbours. Sends of a program without times
// are an exception: they are shown for their arrows.
func (trace *tracer) instr(i int32) {
	instr := &trace.prog.Instrs[i]
	pid := int64(trace.prog.Devices[instr.Device].ID)
	duration := trace.result.End[i] - trace.result.Start[i]
	if duration == 0 && (trace.prog.Timed || instr.Op != program.Send) {
		return
	}
	trace.open("X", label(trace.prog, i), pid)
	trace.number("tid", int64(instr.Stream))
	trace.text("cat", instr.Op.String())
	trace.time("ts", trace.result.Start[i])
	trace.time("dur", duration)
	trace.line = append(trace.line, `,"args":{"line":`...)
	trace.line = append(trace.line, quoted(trace.prog.Line(i))...)
	trace.line = append(trace.line, "}}"...)
	if instr.Op != program.Send {
		return
	}
	taken := trace.taken(trace.messages.in(trace.messages.recv, instr.Channel, instr.Sequence))
	if taken == program.None {
		return
	}
	// It ends a picosecond into the event, which may touch the one before.
	trace.arrow("s", i, i, 0)
	trace.arrow("f", i, taken, 1)
}

// taken returns the first instruction that takes time on a recv's stream, from the recv on.
func (trace *tracer) taken(recv int32) int32 {
	for recv != program.None && trace.result.Start[recv] == trace.result.End[recv] {
		recv = trace.lanes.next[recv]
	}
	return recv
}

// arrow writes an end of a message's arrow, with the number of its send: so many picoseconds after
// the start of an instruction.
func (trace *tracer) arrow(phase string, send, at int32, after int64) {
	instr := &trace.prog.Instrs[at]
	trace.open(phase, trace.prog.Channels[trace.prog.Instrs[send].Channel].Name, int64(trace.prog.Devices[instr.Device].ID))
	trace.number("tid", int64(instr.Stream))
	trace.text("cat", "message")
	trace.number("id", int64(send))
	trace.picoseconds("ts", trace.result.Start[at]*trace.scale+after)
	trace.text("bp", "e") // to the event that encloses the time
	trace.line = append(trace.line, '}')
}

// label is an instruction's name in the viewer: the operation, its routine or message, the
// micro-batch.
func label(prog *program.Program, i int32) string {
	instr := &prog.Instrs[i]
	text := instr.Op.String()
	if instr.Routine >= 0 {
		text += " " + prog.Routines[instr.Routine].Name
	}
	if instr.Channel >= 0 {
		text += " " + prog.Channels[instr.Channel].Name + "#" + strconv.Itoa(int(instr.Sequence))
	}
	if instr.MicroBatch >= 0 {
		text += " mb" + strconv.Itoa(int(instr.MicroBatch))
	}
	return text
}

// open begins an event.
func (trace *tracer) open(phase, name string, pid int64) {
	trace.flush()
	trace.events++
	if trace.events > 1 {
		trace.line = append(trace.line, ',')
	}
	trace.line = append(trace.line, "\n{\"ph\":\""+phase+"\",\"name\":"...)
	trace.line = append(trace.line, quoted(name)...)
	trace.number("pid", pid)
}

func (trace *tracer) text(key, value string) {
	trace.line = append(trace.line, `,"`+key+`":"`+value+`"`...)
}

func (trace *tracer) number(key string, value int64) {
	trace.line = append(trace.line, `,"`+key+`":`...)
	trace.line = strconv.AppendInt(trace.line, value, 10)
}

func (trace *tracer) time(key string, ticks int64) { trace.picoseconds(key, ticks*trace.scale) }

// picoseconds writes a time in microseconds.
func (trace *tracer) picoseconds(key string, time int64) {
	const micro = 1_000_000
	trace.number(key, time/micro)
	if rest := time % micro; rest > 0 {
		trace.line = append(trace.line, '.')
		trace.line = append(trace.line, strconv.FormatInt(micro+rest, 10)[1:]...)
	}
}

// quoted returns a text as a JSON string.
func quoted(text string) string {
	line, err := jsontext.AppendQuote(nil, text)
	if err != nil { // of bytes other than UTF-8, which become U+FFFD
		return string(line)
	}
	return string(line)
}
