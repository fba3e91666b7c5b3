package attention

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

var names = []string{"attention", "attention_dkv", "attention_dq"}

func loaded(t *testing.T) *Table {
	t.Helper()
	table, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestChoose: every width has all kernels, aligned or not, on every GPU; a kernel
// for heads that are wider, or addresses that are better, is never taken.
func TestChoose(t *testing.T) {
	table := loaded(t)
	for _, name := range names {
		for _, dtype := range []string{"bf16", "fp32"} {
			for dim := int64(1); dim <= 256; dim++ {
				for _, aligned := range []bool{false, true} {
					for trial := range 4 {
						capped, hopper := trial%2 == 1, trial/2 == 1
						kernel, err := table.Choose(name, dtype, dim, 1<<(8*(dim%3)), aligned, capped, hopper)
						if err != nil {
							t.Fatal(err)
						}
						if kernel.Width < dim || kernel.Width > 32 && kernel.Width >= 2*dim && kernel.Width/2 >= dim {
							t.Errorf("%s of %d %s is worked on in %d columns", name, dim, dtype, kernel.Width)
						}
						if !hopper && kernel.Target != "sm_80" || !aligned && kernel.Form != "any" || (kernel.Form == "exact" || kernel.Plain()) && kernel.Width != dim || capped && kernel.Plain() {
							t.Errorf("%s of %d %s, aligned %v, capped %v, hopper %v: %+v", name, dim, dtype, aligned, capped, hopper, *kernel)
						}
					}
				}
			}
			if kernel, err := table.Choose(name, dtype, 257, 99, true, false, true); err == nil {
				t.Errorf("%s of 257 %s: %+v", name, dtype, *kernel)
			}
		}
	}
	for _, dim := range []int64{64, 80, 96, 128, 256} {
		if kernel, _ := table.Choose("attention", "bf16", dim, far, true, false, true); !kernel.Plain() {
			t.Errorf("attention of %d on Hopper is %s", dim, kernel.File)
		}
		for _, other := range [][3]bool{{true, false, true}, {false, false, true}, {true, true, true}, {true, false, false}} {
			want := other == [3]bool{true, false, true}
			if kernel, err := table.Choose("attention_backward", "bf16", dim, far, other[0], other[1], other[2]); (err == nil) != want {
				t.Errorf("backward of %d, aligned, capped, on Hopper %v: %+v, %v", dim, other, kernel, err)
			}
		}
	}
}

// TestBox: tiles have the rows that a kernel waits for. Its PTX says how many bytes each copy brings:
// tiles of 64 values in 128 bytes a row, as many as cover a head.
func TestBox(t *testing.T) {
	t.Parallel()
	table := loaded(t)
	copies := regexp.MustCompile(`mov\.u32 \t(%r\d+), (\d+);\n\tmbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%r\d+\], (%r\d+);`)
	for i := range table.Kernels {
		kernel := &table.Kernels[i]
		if !kernel.Plain() {
			continue
		}
		text, err := kernel.PTX()
		if err != nil {
			t.Fatal(err)
		}
		want, got := make(map[string]bool), make(map[string]bool)
		for _, argument := range table.Arguments(kernel) {
			if argument.Kind == 'm' {
				want[fmt.Sprint(kernel.Box(argument.Name)*((kernel.Width+63)/64)*128)] = true
			}
		}
		for _, found := range copies.FindAllStringSubmatch(string(text), -1) {
			if found[1] == found[3] {
				got[found[2]] = true
			}
		}
		if own := map[string]string{"attention": "q", "attention_backward": "k"}[kernel.Name]; kernel.Box(own) != kernel.Rows {
			t.Errorf("%s: a block owns %d rows, and %s has a box of %d", kernel.File, kernel.Rows, own, kernel.Box(own))
		}
		if len(want) == 0 || !maps.Equal(got, want) {
			t.Errorf("%s copies tiles of %v bytes, its boxes have %v", kernel.File, got, want)
		}
	}
}

// TestPTX: each module is for the drivers in the table, and has the kernel with its arguments and
// threads. Its shared memory is no more than a block gets on the smallest GPU of its target: 99 KB
// on 8.6 and 8.9, 227 KB on 9.0. The source is the CUDA C++ Programming Guide, technical
// specifications.
func TestPTX(t *testing.T) {
	table := loaded(t)
	most := map[string]uint32{"sm_80": 99 << 10, "sm_90a": 227 << 10}
	isa := map[string]string{"sm_80": "7.8", "sm_90a": "8.0"}
	kinds := map[byte]string{'*': ".u64", 'i': ".u32", 'f': ".f32", 'm': ".align 64 .b8"}
	for i := range table.Kernels {
		kernel := &table.Kernels[i]
		data, err := kernel.PTX()
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		version := isa[kernel.Target]
		if kernel.Plain() {
			version = "8.1"
		}
		if !strings.HasPrefix(text, ".version "+version+"\n.target "+kernel.Target+"\n") {
			t.Errorf("%s begins with %q", kernel.File, text[:40])
		}
		var want []string
		for _, argument := range table.Arguments(kernel) {
			want = append(want, kinds[argument.Kind])
		}
		entry := regexp.MustCompile(`(?s)\.visible \.entry ` + kernel.Name + `\((.*?)\)\n`).FindStringSubmatch(text)
		if entry == nil {
			t.Fatalf("%s has no entry %s", kernel.File, kernel.Name)
		}
		var got []string
		for _, parameter := range regexp.MustCompile(`\.param (\.align 64 \.b8|\.[a-z]\d+)`).FindAllStringSubmatch(entry[1], -1) {
			got = append(got, parameter[1])
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s takes %v, the table says %v", kernel.File, got, want)
		}
		if !strings.Contains(text, fmt.Sprintf(".reqntid %d\n", kernel.Threads)) {
			t.Errorf("%s is not made for %d threads", kernel.File, kernel.Threads)
		}
		if kernel.Shared > most[kernel.Target] {
			t.Errorf("%s asks for %d bytes of shared memory, a block gets %d", kernel.File, kernel.Shared, most[kernel.Target])
		}
		waits := kernel.Name == "attention_backward" && strings.Contains(text, "ld.acquire.gpu") && !strings.Contains(text, "atom.") // for its turn
		if !waits && regexp.MustCompile(`\b(atom|red|cp\.reduce\.async\.bulk)\.`).MatchString(text) {
			t.Errorf("%s adds atomically: in no order", kernel.File)
		}
	}
	entries, err := files.ReadDir(".")
	if err != nil || len(entries) != len(table.Kernels)+1 {
		t.Errorf("%d files are embedded, %v: %d are in the table, which is one itself", len(entries), err, len(table.Kernels))
	}
}

// TestShort: where queries see few keys, forward takes smaller blocks of them.
func TestShort(t *testing.T) {
	for reach, want := range map[int64]string{1: "short", far - 1: "short", far: "plain"} {
		if kernel, err := loaded(t).Choose("attention", "bf16", 64, reach, true, false, true); err != nil || kernel.Form != want {
			t.Errorf("%d keys: %+v, %v", reach, kernel, err)
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"kernel\ta", "arguments\tattention\tq:*quad", "other", strings.Repeat("kernel\t", 10) + "x", "kernel\ta\tbf16\tsm_80\t64\tany\t0\t128\t0\t32\tf.ptx"} {
		if table, err := parse(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, table)
		}
	}
}

// TestStated: the package's comment says how many modules there are and how large
// they are together.
func TestStated(t *testing.T) {
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var modules int
	var bytes float64
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(entry.Name(), ".ptx") {
			modules++
			bytes += float64(len(text))
		}
	}
	code, err := os.ReadFile("attention.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d modules of %.1f MB", modules, bytes/1e6); !strings.Contains(strings.Split(string(code), "\npackage ")[0], want) {
		t.Errorf("the comment of attention.go does not say %q", want)
	}
}

// TestSplits: heads that share keys are split if there are few blocks and all sums fit.
func TestSplits(t *testing.T) {
	kernel := &Kernel{Name: "attention_backward", Rows: 128}
	const workspace = 32 << 20
	for _, trial := range []struct{ sequences, seq, heads, shared, dim, workspace, want int64 }{
		{4, 2048, 16, 2, 128, workspace, 2},     // 128 blocks, and two sums fill the workspace
		{4, 2048, 16, 2, 128, workspace - 1, 1}, // and a byte less
		{4, 2048, 16, 2, 128, 2 * workspace, 2}, // two make enough
		{4, 2048, 32, 8, 64, workspace, 1},      // there are enough
		{1, 300, 24, 2, 64, workspace, 12},      // 6 blocks: never enough
		{1, 300, 2, 2, 64, workspace, 1},        // nothing is shared
	} {
		if got := kernel.Splits(trial.sequences, trial.seq, trial.heads, trial.shared, trial.dim, trial.workspace); got != trial.want {
			t.Errorf("%+v: %d splits", trial, got)
		}
	}
}
