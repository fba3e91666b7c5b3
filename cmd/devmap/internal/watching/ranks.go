package watching

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// rankVersion names the format of a rank's file.
const rankVersion = "devmap.rank/v1"

// Ranked is a rank's report: its devices of the plan, and the peaks of its processes.
type Ranked struct {
	FormatVersion string        `json:"format_version"`
	Rank          int           `json:"rank"`
	World         int           `json:"world"` // number of ranks that report
	Host          string        `json:"host"`
	PlanSHA256    string        `json:"plan_sha256"` // of the plan as devmap writes it; "": without a plan
	ExitStatus    *int          `json:"exit_status"` // of the command, as in a shell; null: unknown
	Devices       []RankDevice  `json:"devices"`
	Report        *watch.Report `json:"report"`
}

// RankDevice is a device of a rank, with the allocator's peaks in bytes.
type RankDevice struct {
	Device         int    `json:"device"`
	PredictedBytes int64  `json:"predicted_peak_allocated_bytes"` // 0: without a plan
	MeasuredBytes  *int64 `json:"measured_peak_allocated_bytes"`  // null: no process reported one
}

// measured returns the peak of a device; 0 if there is none, as in older files.
func (device *RankDevice) measured() int64 {
	if device.MeasuredBytes == nil {
		return 0
	}
	return *device.MeasuredBytes
}

// above reports that a device exceeds the plan.
func (device *RankDevice) above() bool {
	return device.PredictedBytes > 0 && float64(device.measured()) > (1+abovePart)*float64(device.PredictedBytes)
}

// percent returns by how many percent a device exceeds the plan.
func (device *RankDevice) percent() float64 {
	return 100 * (float64(device.measured())/float64(device.PredictedBytes) - 1)
}

// launchers lists the variables of a rank's number and of the number of ranks: torchrun, Slurm,
// Open MPI and MPICH.
var launchers = [][2]string{
	{"RANK", "WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"},
}

// RankOf reads this process's rank and the number of ranks.
func RankOf(variable func(string) string) (*Ranked, error) {
	for _, names := range launchers {
		rank, size := variable(names[0]), variable(names[1])
		if rank == "" || size == "" {
			continue
		}
		number, err := strconv.Atoi(rank)
		world, other := strconv.Atoi(size)
		if err != nil || other != nil || number < 0 || number >= world {
			return nil, out.Usagef("--rank-from-env: %s=%q and %s=%q are no rank of so many", names[0], rank, names[1], size)
		}
		host, err := os.Hostname()
		return &Ranked{FormatVersion: rankVersion, Rank: number, World: world, Host: host}, err
	}
	for _, names := range launchers {
		switch rank, size := variable(names[0]), variable(names[1]); {
		case rank != "":
			return nil, out.Usagef("--rank-from-env: %s=%q is set, but %s is not: set it to the number of ranks, or start with torchrun, srun or mpirun", names[0], rank, names[1])
		case size != "":
			return nil, out.Usagef("--rank-from-env: %s=%q is set, but %s is not: set it to the number of this rank, or start with torchrun, srun or mpirun", names[1], size, names[0])
		}
	}
	return nil, out.Usagef("--rank-from-env: RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK and PMI_RANK are not set: start it with torchrun, srun or mpirun")
}

// File returns the rank's file in a folder.
func (ranked *Ranked) File(folder string) string {
	return filepath.Join(folder, fmt.Sprintf("rank-%05d.json", ranked.Rank))
}

// Of sets the plan. It reports whether a file is of another job, which has other ranks or another
// plan.
func (ranked *Ranked) Of(plan *devicemap.Plan, file string) (another bool, err error) {
	if plan != nil {
		digest := sha256.New()
		if err := devicemap.WriteJSON(digest, plan); err != nil {
			return false, err
		}
		ranked.PlanSHA256 = hex.EncodeToString(digest.Sum(nil))
	}
	var before Ranked
	data, missing := modelgraph.ReadSmall(file, "a report of a rank", 16<<20)
	read := missing == nil && modelgraph.DecodeJSON(file, data, &before, false) == nil
	return read && (before.World != ranked.World || before.PlanSHA256 != ranked.PlanSHA256), nil
}

// Take sets the measurements of a rank's device, or of its host's devices.
func (ranked *Ranked) Take(plan *devicemap.Plan, said *watch.Report) error {
	if ranked.Report = said; said == nil { // the command did not start
		said = &watch.Report{}
	}
	if said.Command != nil {
		ranked.ExitStatus = said.Command.ExitStatus
	}
	count := 1
	if plan != nil {
		if count = len(plan.Devices) / ranked.World; count*ranked.World != len(plan.Devices) {
			return out.Usagef("--rank-from-env: %d ranks do not share the %d devices of the plan evenly: start one for each GPU, or one for each host", ranked.World, len(plan.Devices))
		}
	}
	for i := range count {
		one := RankDevice{Device: ranked.Rank*count + i}
		if plan != nil {
			one.PredictedBytes = plan.Devices[one.Device].Predicted.PeakAllocatedBytes
		}
		most := int64(0)
		for _, process := range said.Processes {
			for _, gpu := range process.GPUs {
				if count == 1 || gpu.Index == i {
					most = max(most, gpu.AllocatedPeakBytes)
				}
			}
		}
		if most > 0 {
			one.MeasuredBytes = &most
		}
		ranked.Devices = append(ranked.Devices, one)
	}
	return nil
}

// Merged compares the ranks of a job. Peers are devices with the same prediction.
type Merged struct {
	FormatVersion string         `json:"format_version"`
	Verdict       report.Verdict `json:"verdict"`      // pass, if all lists below are empty
	Missing       []int          `json:"missing"`      // ranks without a file
	Failed        []FailedRank   `json:"failed"`       // ranks whose command failed
	NotMeasured   []Unmeasured   `json:"not_measured"` // ranks without a peak
	AbovePlan     []AbovePlan    `json:"above_plan"`
	Above         []AboveDevice  `json:"above_peers"`
	Ranks         []Ranked       `json:"ranks"` // by number
}

// FailedRank is a rank whose command failed.
type FailedRank struct {
	Rank       int    `json:"rank"`
	Host       string `json:"host"`
	ExitStatus int    `json:"exit_status"`
}

// Unmeasured is a rank, with its devices for which no process reported a peak.
type Unmeasured struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Devices []int  `json:"devices"`
}

// AbovePlan is a device that exceeds the plan.
type AbovePlan struct {
	Rank           int     `json:"rank"`
	Host           string  `json:"host"`
	Device         int     `json:"device"`
	Bytes          int64   `json:"measured_peak_allocated_bytes"`
	PredictedBytes int64   `json:"predicted_peak_allocated_bytes"`
	Percent        float64 `json:"above_percent"`
}

// AboveDevice is a device that exceeds the median of its peers.
type AboveDevice struct {
	Rank        int    `json:"rank"`
	Host        string `json:"host"`
	Device      int    `json:"device"`
	Bytes       int64  `json:"measured_peak_allocated_bytes"`
	MedianBytes int64  `json:"median_of_peers_bytes"`
}

// Peers agree to the byte, except for a bucket with DDP (fixtures/measured). A segment of the
// allocator has 20 MiB (CUDACachingAllocator.cpp, kLargeBuffer).
const (
	abovePart  = 0.01
	aboveBytes = 20 << 20
)

// Merge reads the files of all ranks in a folder, and returns their names.
func Merge(folder string) (merged *Merged, files []string, err error) {
	names, err := fs.Glob(os.DirFS(folder), "rank-*.json")
	if err != nil || len(names) == 0 {
		return nil, nil, fmt.Errorf("--merge %q: no file rank-NNNNN.json is there: each rank writes one with devmap watch --rank-from-env -o %q", folder, folder)
	}
	merged = &Merged{FormatVersion: "devmap.ranks/v1", Missing: []int{}, Failed: []FailedRank{}, NotMeasured: []Unmeasured{}, AbovePlan: []AbovePlan{}, Above: []AboveDevice{}}
	for _, name := range names {
		file := filepath.Join(folder, name)
		files = append(files, file)
		data, err := modelgraph.ReadSmall(file, "a report of a rank", 16<<20)
		if err != nil {
			return nil, nil, err
		}
		var one Ranked
		if err := modelgraph.DecodeJSON(file, data, &one, false); err != nil {
			return nil, nil, err
		}
		if fault := merged.fault(&one); fault != "" {
			return nil, nil, fmt.Errorf("%s: %s: delete the files of other jobs", out.OneLine(file), fault)
		}
		if one.ExitStatus == nil && one.Report != nil && one.Report.Command != nil {
			one.ExitStatus = one.Report.Command.ExitStatus // from an older file
		}
		merged.Ranks = append(merged.Ranks, one)
	}
	slices.SortStableFunc(merged.Ranks, func(a, b Ranked) int { return a.Rank - b.Rank })
	merged.compare()
	merged.conclude()
	return merged, files, nil
}

// fault says why a report is not of the same job as earlier ones; "" if it is.
func (merged *Merged) fault(one *Ranked) string {
	if one.FormatVersion != rankVersion || one.Rank < 0 || one.Rank >= one.World {
		return fmt.Sprintf("rank %d of %d in the format %q", one.Rank, one.World, one.FormatVersion)
	}
	for i := range merged.Ranks {
		switch before := &merged.Ranks[i]; {
		case one.World != before.World:
			return fmt.Sprintf("rank %d of %d in the format %q", one.Rank, one.World, one.FormatVersion)
		case one.PlanSHA256 != before.PlanSHA256:
			return fmt.Sprintf("rank %d ran with another plan than rank %d", one.Rank, before.Rank)
		case one.Rank == before.Rank:
			return fmt.Sprintf("it is a second report of rank %d", one.Rank)
		}
	}
	return ""
}

// compare finds missing ranks and devices above their peers.
func (merged *Merged) compare() {
	peers, seen := make(map[int64][]int64), make(map[int]bool)
	for i := range merged.Ranks {
		seen[merged.Ranks[i].Rank] = true
		for _, device := range merged.Ranks[i].Devices {
			if measured := device.measured(); measured > 0 {
				peers[device.PredictedBytes] = append(peers[device.PredictedBytes], measured)
			}
		}
	}
	for rank := range merged.Ranks[0].World {
		if !seen[rank] {
			merged.Missing = append(merged.Missing, rank)
		}
	}
	for _, all := range peers {
		slices.Sort(all)
	}
	for i := range merged.Ranks {
		rank := &merged.Ranks[i]
		for _, device := range rank.Devices {
			all := peers[device.PredictedBytes]
			if len(all) < 2 || device.measured() == 0 {
				continue
			}
			median := all[(len(all)-1)/2]
			if more := device.measured() - median; more > max(aboveBytes, int64(abovePart*float64(median))) {
				merged.Above = append(merged.Above, AboveDevice{rank.Rank, rank.Host, device.Device, device.measured(), median})
			}
		}
	}
}

// conclude judges each rank, and all of them.
func (merged *Merged) conclude() {
	for i := range merged.Ranks {
		merged.judge(&merged.Ranks[i])
	}
	merged.Verdict = report.Pass
	if len(merged.Missing)+len(merged.Failed)+len(merged.NotMeasured)+len(merged.AbovePlan)+len(merged.Above) > 0 {
		merged.Verdict = report.Fail
	}
}

// judge lists a rank that failed, was not measured or is above the plan.
func (merged *Merged) judge(rank *Ranked) {
	if status := rank.ExitStatus; status != nil && *status != 0 {
		merged.Failed = append(merged.Failed, FailedRank{rank.Rank, rank.Host, *status})
	}
	without := []int{}
	for _, device := range rank.Devices {
		measured := device.measured()
		if measured == 0 {
			without = append(without, device.Device)
		}
		if device.above() {
			merged.AbovePlan = append(merged.AbovePlan, AbovePlan{rank.Rank, rank.Host, device.Device, measured, device.PredictedBytes, device.percent()})
		}
	}
	if len(without) > 0 || len(rank.Devices) == 0 {
		merged.NotMeasured = append(merged.NotMeasured, Unmeasured{rank.Rank, rank.Host, without})
	}
}

// Show prints a line for each device, or one for all with the same figures and host.
func (merged *Merged) Show(to io.Writer) error {
	lines := make(map[string][]string)
	var order []string
	for i := range merged.Ranks {
		rank := &merged.Ranks[i]
		for _, device := range rank.Devices {
			text := fmt.Sprintf("%-24s %12v %12v %8s", out.Cell(rank.Host), bytesOr(device.PredictedBytes), bytesOr(device.measured()), ratio(&device))
			if lines[text] == nil {
				order = append(order, text)
			}
			lines[text] = append(lines[text], strconv.Itoa(device.Device))
		}
	}
	text := fmt.Sprintf("%-24s %12s %12s %8s  Devices\n", "Host", "Predicted", "Measured", "Off")
	for _, line := range order {
		text += fmt.Sprintf("%s  %s\n", line, strings.Join(lines[line], ","))
	}
	_, err := io.WriteString(to, text+merged.said())
	return err
}

// said returns a line for each reason why the verdict is fail, or one that says there is none.
func (merged *Merged) said() (text string) {
	for _, failed := range merged.Failed {
		text += fmt.Sprintf("rank %d failed on %s: its COMMAND ended with status %d\n", failed.Rank, out.Cell(failed.Host), failed.ExitStatus)
	}
	for _, without := range merged.NotMeasured {
		text += fmt.Sprintf("rank %d was not measured on %s: no process reported PyTorch's peak on device %s\n", without.Rank, out.Cell(without.Host), list(without.Devices))
	}
	for _, above := range merged.AbovePlan {
		text += fmt.Sprintf("rank %d is above the plan on %s: device %d holds %v, %v (%.2f%%) more than the %v of the plan\n",
			above.Rank, out.Cell(above.Host), above.Device, costmodel.Bytes(above.Bytes), costmodel.Bytes(above.Bytes-above.PredictedBytes), above.Percent, costmodel.Bytes(above.PredictedBytes))
	}
	for _, above := range merged.Above {
		text += fmt.Sprintf("rank %d on %s: device %d holds %v, and the median of its peers is %v: look for another process, other data or a longer sequence there\n",
			above.Rank, out.Cell(above.Host), above.Device, costmodel.Bytes(above.Bytes), costmodel.Bytes(above.MedianBytes))
	}
	if len(merged.Missing) > 0 {
		text += fmt.Sprintf("no report of rank %s\n", list(merged.Missing))
	}
	if merged.Verdict == report.Pass {
		text += fmt.Sprintf("All %d ranks reported, and none holds more than %sits peers.\n", len(merged.Ranks), merged.planned())
	}
	return text
}

// planned names the plan, if there is one.
func (merged *Merged) planned() string {
	for i := range merged.Ranks {
		for _, device := range merged.Ranks[i].Devices {
			if device.PredictedBytes > 0 {
				return "the plan or "
			}
		}
	}
	return ""
}

// list returns numbers with commas between them.
func list(numbers []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ", "), "[]")
}

// bytesOr returns a number of bytes, or a dash if it is unknown.
func bytesOr(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return costmodel.Bytes(bytes).String()
}

func ratio(device *RankDevice) string {
	if device.PredictedBytes == 0 || device.measured() == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.2f%%", device.percent())
}
