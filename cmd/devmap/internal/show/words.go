package show

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// scale is the unit of a table.
type scale struct {
	name   string
	size   float64
	digits int
}

// scaleFor returns the unit for the largest figure.
func scaleFor(largest int64) scale {
	if largest >= 1<<30 {
		return scale{"GiB", 1 << 30, 2}
	}
	return scale{"MiB", 1 << 20, 1}
}

func (unit scale) print(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f", unit.digits, float64(bytes)/unit.size)
}

func gib(bytes int64) string { return scale{"GiB", 1 << 30, 2}.print(bytes) }

// sized formats a part of a size.
func sized(part, of int64) string {
	return fmt.Sprintf("%v of %v", costmodel.Bytes(part), costmodel.Bytes(of))
}

// Seconds formats a time with three significant digits.
func Seconds(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3g ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.3g s", seconds)
}

// Plural formats a count: 1 fault, 2 faults, 4 micro-batches.
func Plural[T int | int64](count T, what string) string {
	if count == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	if strings.HasSuffix(what, "ch") {
		return fmt.Sprintf("%d %ses", count, what)
	}
	return fmt.Sprintf("%d %ss", count, what)
}

// Missing names the GPUs that a plan for count has beyond the first here: "GPUs 2 to 7 are missing".
func Missing(count, here int) string {
	if count == here+1 {
		return fmt.Sprintf("GPU %d is missing", here)
	}
	return fmt.Sprintf("GPUs %d to %d are missing", here, count-1)
}

// grouped formats 8030261248 as 8,030,261,248.
func grouped(count int64) string {
	digits := fmt.Sprint(count)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// scheduleName returns a schedule's name. An order that has none is too long to print.
func scheduleName(kind costmodel.ScheduleKind) string {
	switch {
	case !kind.OwnOrder():
		return string(kind)
	case kind.Vee():
		return "in an own V-shaped order"
	}
	return "in an own order"
}

// Described returns a strategy with its schedule.
func Described(workload *costmodel.Workload) string {
	text := string(workload.Strategy)
	if workload.Strategy.Traits().Staged {
		text += fmt.Sprintf(" %s, %s", scheduleName(workload.Schedule), Plural(max(1, workload.MicroBatches), "micro-batch"))
	}
	if workload.MemFraction > 0 { // JAX may shard arrays over fewer GPUs than there are
		text += fmt.Sprintf(" over %d", workload.ShardDegree)
	}
	return text
}
