package watching

import (
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
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// rankVersion names the format of a rank's file.
const rankVersion = "devmap.rank/v1"

// Ranked is what a rank of a job reports: the devices of the plan that it has, and the
// peaks of its processes.
type Ranked struct {
	FormatVersion string        `json:"format_version"`
	Rank          int           `json:"rank"`
	World         int           `json:"world"` // ranks that report
	Host          string        `json:"host"`
	Devices       []RankDevice  `json:"devices"`
	Report        *watch.Report `json:"report"`
}

// RankDevice is a device of a rank, with bytes of the allocator's peaks. Measured is 0
// if no process reported one.
type RankDevice struct {
	Device         int   `json:"device"`
	PredictedBytes int64 `json:"predicted_peak_allocated_bytes"` // 0: without a plan
	MeasuredBytes  int64 `json:"measured_peak_allocated_bytes"`
}

// launchers are the variables of a rank's number and of the number of ranks: of
// torchrun, Slurm, Open MPI and MPICH.
var launchers = [][2]string{
	{"RANK", "WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"},
}

// RankOf reads which rank of how many this process is.
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

// File is the rank's file in a folder.
func (ranked *Ranked) File(folder string) string {
	return filepath.Join(folder, fmt.Sprintf("rank-%05d.json", ranked.Rank))
}

// Take fills in what was measured of a rank's device, or of those of its host.
func (ranked *Ranked) Take(plan *devicemap.Plan, report *watch.Report) error {
	ranked.Report = report
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
		for _, process := range report.Processes {
			for _, gpu := range process.GPUs {
				if count == 1 || gpu.Index == i {
					one.MeasuredBytes = max(one.MeasuredBytes, gpu.AllocatedPeakBytes)
				}
			}
		}
		ranked.Devices = append(ranked.Devices, one)
	}
	return nil
}

// Merged compares the ranks of a job. Peers are devices with the same prediction.
type Merged struct {
	FormatVersion string        `json:"format_version"`
	Ranks         []Ranked      `json:"ranks"`   // by number
	Missing       []int         `json:"missing"` // ranks without a file
	Above         []AboveDevice `json:"above_peers"`
}

// AboveDevice is a device that holds more than the median of its peers.
type AboveDevice struct {
	Rank        int    `json:"rank"`
	Host        string `json:"host"`
	Device      int    `json:"device"`
	Bytes       int64  `json:"measured_peak_allocated_bytes"`
	MedianBytes int64  `json:"median_of_peers_bytes"`
}

// Peers agree to the byte, but for a bucket under DDP (fixtures/measured); a segment of
// the allocator has 20 MiB (CUDACachingAllocator.cpp, kLargeBuffer).
const (
	abovePart  = 0.01
	aboveBytes = 20 << 20
)

// Merge reads the files of all ranks in a folder.
func Merge(folder string) (*Merged, error) {
	files, err := fs.Glob(os.DirFS(folder), "rank-*.json")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("--merge %q: no file rank-N.json is there: each rank writes one with devmap watch --rank-from-env -o %q", folder, folder)
	}
	merged := &Merged{FormatVersion: "devmap.ranks/v1", Missing: []int{}, Above: []AboveDevice{}}
	for _, name := range files {
		file := filepath.Join(folder, name)
		data, err := modelgraph.ReadSmall(file, "a report of a rank", 16<<20)
		if err != nil {
			return nil, err
		}
		var one Ranked
		if err := modelgraph.DecodeJSON(file, data, &one, false); err != nil {
			return nil, err
		}
		if one.FormatVersion != rankVersion || one.Rank < 0 || one.Rank >= one.World || len(merged.Ranks) > 0 && one.World != merged.Ranks[0].World {
			return nil, fmt.Errorf("%s: rank %d of %d in the format %q: delete the files of other jobs", out.OneLine(file), one.Rank, one.World, one.FormatVersion)
		}
		merged.Ranks = append(merged.Ranks, one)
	}
	slices.SortStableFunc(merged.Ranks, func(a, b Ranked) int { return a.Rank - b.Rank })
	merged.compare()
	return merged, nil
}

// compare finds missing ranks and devices above their peers.
func (merged *Merged) compare() {
	peers, seen := make(map[int64][]int64), make(map[int]bool)
	for i := range merged.Ranks {
		seen[merged.Ranks[i].Rank] = true
		for _, device := range merged.Ranks[i].Devices {
			if device.MeasuredBytes > 0 {
				peers[device.PredictedBytes] = append(peers[device.PredictedBytes], device.MeasuredBytes)
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
			if len(all) < 2 || device.MeasuredBytes == 0 {
				continue
			}
			median := all[(len(all)-1)/2]
			if more := device.MeasuredBytes - median; more > max(aboveBytes, int64(abovePart*float64(median))) {
				merged.Above = append(merged.Above, AboveDevice{rank.Rank, rank.Host, device.Device, device.MeasuredBytes, median})
			}
		}
	}
}

// Failed reports that a rank is missing, or above its peers, or above the plan.
func (merged *Merged) Failed() bool {
	over := false
	for i := range merged.Ranks {
		for _, device := range merged.Ranks[i].Devices {
			over = over || device.PredictedBytes > 0 && float64(device.MeasuredBytes) > (1+abovePart)*float64(device.PredictedBytes)
		}
	}
	return over || len(merged.Missing) > 0 || len(merged.Above) > 0
}

// Show prints a line for each device: all of the same figures and host together.
func (merged *Merged) Show(to io.Writer) error {
	lines := make(map[string][]string)
	var order []string
	for i := range merged.Ranks {
		rank := &merged.Ranks[i]
		for _, device := range rank.Devices {
			text := fmt.Sprintf("%-24s %12v %12v %8s", out.Cell(rank.Host), costmodel.Bytes(device.PredictedBytes), costmodel.Bytes(device.MeasuredBytes), ratio(&device))
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
	for _, above := range merged.Above {
		text += fmt.Sprintf("rank %d on %s: device %d holds %v, and the median of its peers is %v: look for another process, other data or a longer sequence there\n",
			above.Rank, out.Cell(above.Host), above.Device, costmodel.Bytes(above.Bytes), costmodel.Bytes(above.MedianBytes))
	}
	if len(merged.Missing) > 0 {
		text += fmt.Sprintf("no report of rank %s\n", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(merged.Missing)), ", "), "[]"))
	}
	if len(merged.Above) == 0 && len(merged.Missing) == 0 {
		text += fmt.Sprintf("All %d ranks reported, and none holds more than its peers.\n", len(merged.Ranks))
	}
	_, err := io.WriteString(to, text)
	return err
}

func ratio(device *RankDevice) string {
	if device.PredictedBytes == 0 || device.MeasuredBytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.2f%%", 100*(float64(device.MeasuredBytes)/float64(device.PredictedBytes)-1))
}
