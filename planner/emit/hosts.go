package emit

import (
	"embed"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/template"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

//go:embed jobs
var jobTexts embed.FS

var jobForms = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(jobTexts, "jobs/*.tmpl")) })

// form fills in the text of a job's file. Text from outside is in the headline alone,
// which is a comment, and in the job's name.
func form(to io.Writer, name string, plan *devicemap.Plan, values map[string]any) error {
	hosts, each := hostsOf(plan)
	if values == nil {
		values = make(map[string]any)
	}
	values["Headline"], values["Name"], values["Hosts"], values["Each"] = headline(plan), jobName(plan), hosts, each
	return jobForms().ExecuteTemplate(to, name+".tmpl", values)
}

// headline is the comment of a job's file.
func headline(plan *devicemap.Plan) string {
	text := fmt.Sprintf("devmap's plan of %s: %s on %d GPUs", quote.Comment(plan.Model.Name), plan.Workload.Strategy, max(plan.Workload.World, int64(len(plan.Topology.Devices))))
	if hosts, _ := hostsOf(plan); hosts > 1 {
		text += fmt.Sprintf(" of %d hosts", hosts)
	}
	return text
}

// hostsOf is the number of hosts of a plan, and of the GPUs on each.
func hostsOf(plan *devicemap.Plan) (hosts int, each int64) {
	devices := plan.Topology.Devices
	for i := range devices {
		if i == 0 || devices[i].Host != devices[i-1].Host {
			hosts++
		}
	}
	hosts = max(1, hosts)
	return hosts, max(1, plan.Workload.World, int64(len(devices))) / int64(hosts) // a device map has one process, and World is 0
}

// equalHosts refuses hosts that a launcher cannot start: torchrun and the
// schedulers start as many processes on each, of one kind.
func equalHosts(plan *devicemap.Plan) error {
	hosts, each := hostsOf(plan)
	devices, seen := plan.Topology.Devices, make(map[string]int64)
	for i := range devices {
		device, first := &devices[i], &devices[0]
		if hosts > 1 && (device.Name != first.Name || device.CapacityBytes != first.CapacityBytes) {
			return refused("the plan for %q has %s (%v) on GPU 0 and %s (%v) on GPU %d: a job of several hosts wants the same GPUs on all", plan.Model.Name,
				quote.Comment(first.Name), costmodel.Bytes(first.CapacityBytes), quote.Comment(device.Name), costmodel.Bytes(device.CapacityBytes), i)
		}
		if i > 0 && device.Host != devices[i-1].Host && seen[device.Host] > 0 {
			return refused("the plan for %q has GPU %d on host %s, apart from that host's other GPUs: list the GPUs of the topology one host after another", plan.Model.Name, i, quote.Comment(device.Host))
		}
		seen[device.Host]++
		if hosts > 1 && seen[device.Host] > each {
			return refused("the plan for %q has more than %d of its %d GPUs on host %s: a job of %d hosts wants %d on each", plan.Model.Name,
				each, len(devices), quote.Comment(device.Host), hosts, each)
		}
	}
	return nil
}

// torchrun are its arguments: on several hosts a rendezvous of torch (c10d) at the
// first.
func torchrun(plan *devicemap.Plan) string {
	hosts, each := hostsOf(plan)
	if hosts == 1 {
		return fmt.Sprintf("--standalone --nproc_per_node %d", each)
	}
	return fmt.Sprintf(`--nnodes %d --nproc_per_node %d --rdzv_backend c10d --rdzv_id "${RDZV_ID:-devmap}" --rdzv_endpoint "$MASTER_ADDR:$MASTER_PORT"`, hosts, each)
}

// folder are the files of a job: the program's own, and run.sh, which starts it alone
// or under a scheduler. The command's files are those in [here].
func folder(input *Input, name string, write func(io.Writer, *Input) error, command string) (map[string]string, error) {
	if err := equalHosts(input.Plan); err != nil {
		return nil, err
	}
	scripted := strings.Contains(command, " SCRIPT")
	files, command := make(map[string]string), strings.Replace(command, " SCRIPT", ` "${SCRIPT:?the training script}"`, 1)
	own := &strings.Builder{}
	if err := write(own, input); err != nil {
		return nil, err
	}
	for _, file := range []string{"run.sh", "job.sbatch", "trainjob.yaml", "jobset.yaml"} {
		text := &strings.Builder{}
		if err := form(text, file, input.Plan, map[string]any{"Here": true, "Command": command, "Script": scripted}); err != nil {
			return nil, err
		}
		files[file] = text.String()
	}
	files[name] = own.String()
	return files, nil
}

// here is the word of run.sh for a file in its folder: run.sh keeps the directory that it is called
// in, where a training script and its data are.
func here(file string) string { return `"$HERE/` + file + `"` }

// jobName is a name for Kubernetes and Slurm: letters, digits and hyphens.
func jobName(plan *devicemap.Plan) string {
	const most = 40
	name := "devmap-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(plan.Model.Name))
	return strings.Trim(name[:min(most, len(name))], "-")
}
