//go:build cuda && linux && cgo && amd64

package driver

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/internal/drivertest"
	"github.com/devmap-dev/devmap/fixtures"
)

func TestMain(m *testing.M) {
	if err := drivertest.Main(m); err != nil {
		panic(err)
	}
}

// bound is a GPU's context on the test's thread.
func bound(t *testing.T) *Context {
	t.Helper()
	if err := Open(); err != nil {
		t.Fatal(err)
	}
	devices := fixtures.Must(Devices())(t)
	context, err := devices[0].Retain()
	if err == nil {
		err = context.Bind()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := context.Release(); err != nil {
			t.Error(err)
		}
		if leaked := Unreleased(); leaked != "" {
			t.Errorf("the process still holds %s", leaked)
		}
	})
	return context
}

// Whatever is missing is named, and the next library is looked for.
func TestMissing(t *testing.T) {
	if text, err := load("libnone.so.7"); err != nil || !strings.Contains(text, "libnone.so.7") {
		t.Errorf("no library: %q, %v", text, err)
	}
	if _, err := load("libm.so.6"); err == nil || err.Error() != "libm.so.6: the driver has no cuInit: it is older than CUDA 11.8's (520)" {
		t.Errorf("no symbol: %v", err)
	}
	if err := Open(); err != nil {
		t.Fatal(err)
	}
	missing := Missing()
	for _, name := range needed {
		if slices.Contains(missing, name) {
			t.Errorf("%s is needed, and missing", name)
		}
	}
	if !slices.Contains(missing, "cuGraphCreate") {
		t.Errorf("missing are %v", missing)
	}
}

// The table has an entry for every function that the header declares, by the name
// that it has in the library.
func TestSymbols(t *testing.T) {
	header := fixtures.Must(os.ReadFile("include/cuda_calls.h"))(t)
	table := fixtures.Must(os.ReadFile("symbols.h"))(t)
	versions := make(map[string]string)
	for _, found := range regexp.MustCompile(`(?m)^#define (\w+) (\w+)$`).FindAllSubmatch(header, -1) {
		versions[string(found[1])] = string(found[2])
	}
	var want, got []string
	for _, found := range regexp.MustCompile(`(?m)^CUresult (\w+)\(`).FindAllSubmatch(header, -1) {
		name := string(found[1])
		if version := versions[name]; version != "" {
			name = version
		}
		want = append(want, name)
	}
	for _, found := range regexp.MustCompile(`X\((\w+)\)`).FindAllSubmatch(table, -1) {
		got = append(got, string(found[1]))
	}
	slices.Sort(want)
	if !slices.Equal(want, got) {
		t.Errorf("declared are %v, the table has %v", want, got)
	}
}

// The program links no CUDA library, and leaves none of its symbols to the loader.
func TestNothingIsLinked(t *testing.T) {
	self := fixtures.Must(os.Executable())(t)
	for _, look := range []struct {
		command []string
		refused string
	}{
		{[]string{"readelf", "-d", self}, `NEEDED.*(cuda|nvidia|cublas)`},
		{[]string{"nm", "-D", "--undefined-only", self}, ` U (cu|nvml)[A-Z]`},
	} {
		if _, err := exec.LookPath(look.command[0]); err != nil {
			t.Skip(err)
		}
		text := fixtures.Must(exec.Command(look.command[0], look.command[1:]...).Output())(t)
		if found := regexp.MustCompile(look.refused).Find(text); found != nil {
			t.Errorf("%s: %s", look.command[0], found)
		}
	}
}

// A failure at any part of a mapping leaves nothing behind.
func TestMapRollsBack(t *testing.T) {
	context := bound(t)
	granule := fixtures.Must(context.Granule())(t)
	free, _, err := FreeMemory()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{granule + 1, 1 << 40} {
		arena, err := context.Map(size)
		var driverErr *Error
		if arena != nil || !errors.As(err, &driverErr) {
			t.Fatalf("%d bytes: %v, %v", size, arena, err)
		}
	}
	if now, _, err := FreeMemory(); err != nil || now != free {
		t.Errorf("%d bytes are free, %d were: %v", now, free, err)
	}
	arena := fixtures.Must(context.Map(3 * granule))(t)
	if now, _, err := FreeMemory(); err != nil || now != free-3*granule {
		t.Errorf("%d bytes are free, %d were: %v", now, free, err)
	}
	if err := errors.Join(arena.Release(), arena.Release()); err != nil {
		t.Error(err)
	}
}

// streamed returns an arena of one granule in a bound context, a stream, and 64 bytes of pinned
// memory. The test releases all three.
func streamed(t *testing.T) (*Arena, *Stream, *Pinned) {
	t.Helper()
	context := bound(t)
	granule := fixtures.Must(context.Granule())(t)
	arena, errArena := context.Map(granule)
	stream, errStream := NewStream()
	pinned, errPinned := Pin(64)
	if err := errors.Join(errArena, errStream, errPinned); err != nil {
		t.Fatal(err)
	}
	return arena, stream, pinned
}

// Copies, fills and kernels run in the order of their stream.
func TestStream(t *testing.T) {
	arena, stream, pinned := streamed(t)
	event, errEvent := NewEvent(true)
	module, errModule := LoadModule("")
	if err := errors.Join(errEvent, errModule); err != nil {
		t.Fatal(err)
	}
	function := fixtures.Must(module.Function("total"))(t)
	ones := bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 4)
	copy(pinned.Data, ones)
	arguments := new(Arguments).Address(arena.Address).Address(arena.Address + 32).Uint32(4)
	shape := Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	if err := errors.Join(stream.Fill(arena.Address, 7, 64), stream.Up(arena.Address, pinned.Data[:16]), stream.Copy(arena.Address+16, arena.Address, 16),
		stream.Launch(function, shape, arguments), stream.Down(pinned.Data[16:], arena.Address+16), stream.Record(event), stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	if ended, err := event.Ended(); !ended || err != nil {
		t.Error(ended, err)
	}
	want := append(append(bytes.Clone(ones), 0, 0, 0x80, 0x40), bytes.Repeat([]byte{7}, 28)...)
	if !bytes.Equal(pinned.Data[16:], want) {
		t.Errorf("%x came back, want %x", pinned.Data[16:], want)
	}
	if _, err := module.Function("none"); err == nil {
		t.Error("a kernel was found that there is not")
	}
	if err := errors.Join(module.Unload(), event.Destroy(), pinned.Free(), stream.Destroy(), arena.Release()); err != nil {
		t.Error(err)
	}
}

// Copies that are kept are a kind of their own, which page tables are counted for.
func TestPinCopy(t *testing.T) {
	bound(t)
	ring, errRing := PinLarge(4 << 20)
	copied, errCopied := PinCopy(64 << 20)
	if err := errors.Join(errRing, errCopied); err != nil {
		t.Fatal(err)
	}
	if found := Tables(); found != 128<<10 {
		t.Errorf("%d bytes of page tables, want 128 KiB: 8 bytes for each 4 KiB of 64 MiB", found)
	}
	if used := Unreleased(); !strings.Contains(used, "1 kept copies of 67108864 bytes") || !strings.Contains(used, "1 pinned stretches of 4194304 bytes") {
		t.Errorf("the process holds %s", used)
	}
	if err := errors.Join(ring.Free(), copied.Free()); err != nil || Tables() != 0 {
		t.Error(err, Tables())
	}
}

// An arena releases its memory and maps it again at the same addresses, which stay
// reserved meanwhile. If there is no memory, the arena stays unmapped.
func TestRemap(t *testing.T) {
	context := bound(t)
	granule := fixtures.Must(context.Granule())(t)
	arena := fixtures.Must(context.Map(3 * granule))(t)
	free, _, err := FreeMemory()
	if err != nil {
		t.Fatal(err)
	}
	at, mapped := arena.Address, Unreleased()
	if err := arena.Remap(); err == nil {
		t.Error("it was mapped twice")
	}
	if err := errors.Join(arena.Unmap(), arena.Unmap()); err != nil || arena.Mapped() {
		t.Error(err)
	}
	if now, _, err := FreeMemory(); err != nil || now != free+3*granule {
		t.Errorf("%d bytes are free, %d were with the arena: %v", now, free, err)
	}
	unmapped := Unreleased()
	for fails := 1; ; fails++ {
		t.Setenv("FAKE_CUDA_FAIL", strconv.Itoa(fails))
		err := arena.Remap()
		if err == nil {
			break
		}
		if Unreleased() != unmapped || arena.Mapped() {
			t.Fatalf("%s is held, and without memory %s, behind %v", Unreleased(), unmapped, err)
		}
		if fails > 10 {
			t.Fatal(err)
		}
	}
	if arena.Address != at || Unreleased() != mapped {
		t.Errorf("it is at %x, and was at %x; held are %s, and were %s", arena.Address, at, Unreleased(), mapped)
	}
	if err := errors.Join(arena.Unmap(), arena.Release()); err != nil {
		t.Error(err)
	}
	if err := arena.Remap(); err == nil {
		t.Error("an arena was mapped that is no more")
	}
}
